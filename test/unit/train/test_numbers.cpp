// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "train/job_size.hpp"
#include "train/min_dp.hpp"
#include "train/step_numbers.hpp"

namespace test_numbers {

using namespace banyan;
using namespace banyan::train;

namespace {

options asked(const char* shape, std::uint32_t spares = 0) {
    options out;
    out.parallel = topo::parse_shape(shape).value();
    out.spares = spares;
    return out;
}

topo::request numbers(const options& o, const stated_numbers& stated) {
    const auto request = request_from(o, stated);
    REQUIRE(request);
    REQUIRE(*request);
    return **request;
}

std::string refusal(const options& o, const stated_numbers& stated) {
    const auto request = request_from(o, stated);
    REQUIRE_FALSE(request);
    return request.error().text();
}

step_job job(const char* shape, std::uint32_t per_node, std::vector<std::string> nodes,
             std::vector<std::string> spares) {
    const auto dims = topo::parse_shape(shape).value();
    const auto k = static_cast<std::uint32_t>(spares.size());
    return {topo::make_request(dims, dims.ranks() / per_node + k, per_node, k).value(), std::move(nodes),
            std::move(spares)};
}

using names = std::vector<std::string>;

}  // namespace

TEST_CASE("what a job says of its size, and what follows", "[spank]") {
    // {min_nodes, max_nodes, tasks, tasks_per_node, gpus_per_node}
    auto r = numbers(asked("tp=4", 1), {3, 3, 4, 0, 0});
    CHECK(r.nodes == 2);
    CHECK(r.ranks_per_node == 2);
    CHECK(all_nodes(r) == 3);
    CHECK(numbers(asked("tp=2,dp=8", 1), {9, 9, 18, 2, 0}).nodes == 8);  // as sbatch counts
    CHECK(numbers(asked("tp=2,dp=8", 1), {9, 9, 16, 2, 0}).nodes == 8);
    CHECK(all_nodes(numbers(asked("tp=8", 1), {0, 0, 0, 4, 0})) == 3);
    CHECK(all_nodes(numbers(asked("tp=8", 1), {0, 0, 4, 4, 0})) == 3);  // sbatch counts one node
    CHECK(all_nodes(numbers(asked("tp=8,dp=4"), {0, 0, 32, 0, 8})) == 4);
    CHECK(numbers(asked("tp=8"), {0, 0, 0, 2, 8}).nodes == 4);  // tasks a node before GPUs a node
    CHECK(numbers(asked("tp=4", 2), {4, 4, 4, 2, 0}).nodes == 2);
    CHECK(numbers(asked("dp=5", 1), {6, 6, 6, 1, 0}).ranks_per_node == 1);
    CHECK(numbers(asked("dp=4"), {4, 4, 4, 0, 0}).ranks_per_node == 1);
    CHECK_FALSE(request_from({}, {2, 2, 2, 0, 0}).value());
}

TEST_CASE("a job that cannot be placed is told the line to type", "[spank]") {
    CHECK(refusal(asked("dp=5", 1), {5, 5, 5, 0, 0}).ends_with("write -N 6 --ntasks-per-node=1, and no -n"));
    CHECK(refusal(asked("dp=5", 1), {5, 5, 5, 1, 0}).ends_with("write -N 6 --ntasks-per-node=1, and no -n"));
    CHECK(refusal(asked("dp=3", 2), {3, 3, 3, 0, 0}).ends_with("write -N 5 --ntasks-per-node=1, and no -n"));
    CHECK(refusal(asked("dp=1", 1), {1, 1, 1, 0, 0}).ends_with("write -N 2 --ntasks-per-node=1, and no -n"));
    CHECK(refusal(asked("tp=4"), {2, 2, 8, 0, 0}).ends_with("ask for -n 4 or change a dimension"));
    CHECK(refusal(asked("tp=4"), {3, 3, 8, 0, 0}).ends_with("ask for -n 4 or change a dimension"));
    CHECK(refusal(asked("tp=4"), {2, 2, 3, 2, 0}).ends_with("ask for -n 4 or change a dimension"));
    CHECK(refusal(asked("tp=4"), {1, 4, 4, 0, 0}).ends_with("write -N NODES"));
    CHECK(refusal(asked("tp=4"), {}).find("add -N NODES, or --ntasks-per-node=RANKS") != std::string::npos);
    CHECK(refusal(asked("tp=4", 1), {}).find("-N NODES, spares included") != std::string::npos);
    CHECK(refusal(asked("tp=8"), {0, 0, 0, 0, 3}).find("which 3 on each node do not divide") !=
          std::string::npos);
    CHECK(refusal(asked("tp=8,dp=4"), {5, 5, 0, 0, 0}).find("does not divide over 5") != std::string::npos);
    CHECK(refusal(asked("tp=1048576"), {4, 4, 0, 0, 0}).find("more than 1024") != std::string::npos);
    CHECK(refusal(asked("tp=2,dp=8", 1), {8, 8, 16, 2, 0}).find("ask for -N 9") != std::string::npos);
}

TEST_CASE("options that mean nothing without a shape", "[spank]") {
    options o;
    o.spares = 1;
    CHECK(refusal(o, {2, 2, 2, 0, 0}).starts_with("--train-spares needs --train-parallel"));
    o = {};
    o.checkpoint = checkpoint_options{};
    CHECK(refusal(o, {2, 2, 2, 0, 0}).starts_with("--train-ckpt needs --train-parallel"));
    o = {};
    o.wait_minutes = 5;
    CHECK(refusal(o, {2, 2, 2, 0, 0}).starts_with("--train-wait needs --train-parallel"));
    o = {};
    o.model = topo::model_size{};
    CHECK(refusal(o, {2, 2, 2, 0, 0}).starts_with("--train-model needs --train-parallel"));
}

TEST_CASE("GPUs of a node in the words of --gres and --gpus-per-node", "[spank]") {
    CHECK(gpus_in("gres:gpu:8") == 8);
    CHECK(gpus_in("gres/gpu:8") == 8);
    CHECK(gpus_in("gpu:a100:4,gpu:v100:2") == 6);
    CHECK(gpus_in("gres:gpu=8") == 8);
    CHECK(gpus_in("gres:nic:2,gres:gpu:a100:8") == 8);
    CHECK(gpus_in("gpu") == 1);
    CHECK(gpus_in("gpu:a100") == 1);
    CHECK(gpus_in("8", true) == 8);
    CHECK(gpus_in("a100:4", true) == 4);
    for (const char* none : {"", "nic:4", "gpus:8", ",,,", "gpu:99999999999999999999", "gpu:2000", "gpu:8k",
                             "gpu:1024,gpu:1024", "NONE", "gpu:0"}) {
        INFO(none);
        CHECK(gpus_in(none) == 0);
    }
}

TEST_CASE("a number of GPUs in all is the same on each node", "[spank]") {
    CHECK(gpus_of_each("gres:gpu:24", 3).value() == "gres:gpu:8");
    CHECK(gpus_of_each("a100:24", 3).value() == "a100:8");
    CHECK(gpus_of_each("24", 3).value() == "8");
    CHECK_FALSE(gpus_of_each("gres:gpu:25", 3));
    for (const char* other : {"", "gres:gpu", "gres:gpu:a:2,gres:gpu:b:4", "gpu:x", "gpu:99999999999"}) {
        INFO(other);
        CHECK_FALSE(gpus_of_each(other, 3).value());
    }
}

TEST_CASE("--ntasks-per-gpu has to make the tasks of the shape", "[spank]") {
    const auto request = topo::make_request(topo::parse_shape("tp=8,dp=2").value(), 2, 8, 0).value();
    CHECK(check_tasks_of_gpus(request, 8, 1));
    CHECK(check_tasks_of_gpus(request, 4, 2));
    for (const auto& [gpus, each] :
         {std::pair{8u, 2u}, {0u, 1u}, {8u, 0u}, {0u, 0u}, {UINT32_MAX, UINT32_MAX}}) {
        const auto refused = check_tasks_of_gpus(request, gpus, each);
        REQUIRE_FALSE(refused);
        CHECK(refused.error().text().find("--ntasks-per-node=8") != std::string::npos);
    }
}

TEST_CASE("the training step takes from the plan what it does not say", "[spank]") {
    const auto j = job("tp=4", 2, {"n01", "n02", "n03"}, {"n02"});
    for (const auto& words :
         {step_words{}, step_words{.tasks = 4}, step_words{.min_nodes = 2, .max_nodes = 2},
          step_words{.min_nodes = 2, .max_nodes = 2, .tasks = 4},
          step_words{.min_nodes = 3, .max_nodes = 3, .tasks = 4}, step_words{.min_nodes = 1, .max_nodes = 4},
          step_words{.tasks_per_node = 2}, step_words{.min_nodes = 3, .max_nodes = 3, .training = true}}) {
        const auto step = numbers_of_training(j, words).value();
        CHECK(step.nodes == 2);
        CHECK(step.tasks == 4);
        CHECK(step.nodelist == names{"n01", "n03"});
    }
    CHECK(numbers_of_training(j, {.exclude = {"n01"}}).value().nodelist == names{"n02", "n03"});
    CHECK(numbers_of_training(j, {.nodelist = {"n01", "n02"}}).value().nodelist.empty());
    CHECK(numbers_of_training(j, {.relative = true}).value().nodelist.empty());
    // Without spares, or without a plan, the choice is Slurm's.
    CHECK(numbers_of_training(job("tp=4", 2, {"n01", "n02"}, {}), {}).value().nodelist.empty());
    CHECK(numbers_of_training({j.request, j.nodes, {}}, {}).value().nodelist.empty());
    // The last spare is the first to stay out.
    const auto two = job("tp=4", 2, {"n01", "n02", "n03"}, {"n02", "n04"});
    CHECK(numbers_of_training(two, {}).value().nodelist == names{"n01", "n03"});
}

TEST_CASE("each node of the training keeps its slot, and others fill the gaps", "[spank]") {
    auto j = job("tp=4", 2, {"n01", "n02", "n03"}, {"n02"});
    CHECK(numbers_of_training(j, {}).value().order.empty());
    j.order = {"n03", "n01"};
    CHECK(numbers_of_training(j, {}).value().order == names{"n03", "n01"});
    CHECK(numbers_of_training(j, {.exclude = {"n03"}}).value().order == names{"n02", "n01"});
    CHECK(numbers_of_training(j, {.nodelist = {"n01", "n02"}}).value().order == names{"n02", "n01"});
    // Nobody knows the nodes that Slurm will take.
    CHECK(numbers_of_training(j, {.relative = true}).value().order.empty());
    j.spares.clear();
    CHECK(numbers_of_training(j, {}).value().order.empty());
}

TEST_CASE("a node that is named twice leaves a slot empty", "[spank]") {
    CHECK(keep_nodes({"n01", "n02"}, {"n01", "n01"}) == names{"n01", ""});
}

TEST_CASE("each task has the node of its slot", "[spank]") {
    CHECK(node_of_each_task(job("tp=4", 2, {}, {}).request, {"b", "a"}) == names{"b", "b", "a", "a"});
    auto launchers = job("tp=4", 2, {}, {}).request;
    launchers.launchers = true;
    CHECK(node_of_each_task(launchers, {"b", "a"}) == names{"b", "a"});
    // Ranks of a slot need not follow one another.
    const auto apart = job("pp=2,tp=4", 2, {}, {}).request;
    const auto tasks = node_of_each_task(apart, {"d", "c", "b", "a"});
    const auto slots = topo::ranks_of_slots(apart);
    for (std::size_t slot = 0; slot < slots.size(); ++slot)
        for (const auto rank : slots[slot]) CHECK(tasks[rank] == names{"d", "c", "b", "a"}[slot]);
}

TEST_CASE("the training is a step that says so, or says neither its size nor its place", "[spank]") {
    // Two nodes of two ranks each, and a spare.
    constexpr job_size job{2, 4};
    CHECK_FALSE(helper_by_size({}, job));
    CHECK_FALSE(helper_by_size({.exclude = {"n01"}}, job));
    CHECK_FALSE(helper_by_size({.tasks = 1, .training = true}, job));
    for (const auto& words :
         {step_words{.tasks = 1}, step_words{.tasks = 3}, step_words{.min_nodes = 1, .max_nodes = 1},
          step_words{.nodelist = {"n01"}}, step_words{.relative = true},
          step_words{.min_nodes = 3, .max_nodes = 3, .tasks = 3, .tasks_per_node = 1}}) {
        const auto helper = helper_by_size(words, job);
        REQUIRE(helper);
        CHECK_FALSE(helper->as_large);
        CHECK(helper->why.ends_with("for the training omit that, or add --train"));
    }
    CHECK(helper_by_size({.min_nodes = 1, .max_nodes = 1, .tasks = 3}, job)
              ->why.starts_with("it says -n 3 -N 1;"));
}

TEST_CASE("the size of the training follows from what the job's environment counts", "[spank]") {
    const auto size = [](const char* shape, std::uint32_t spares, std::uint32_t nodes, std::uint32_t tasks) {
        const auto out = size_of_training(nodes, tasks, asked(shape, spares));
        return std::pair{out.nodes, out.tasks};
    };
    using numbers = std::pair<std::uint32_t, std::uint32_t>;
    CHECK(size("tp=4", 1, 3, 6) == numbers{2, 4});  // two on each, the spare too
    CHECK(size("tp=4", 1, 3, 4) == numbers{2, 4});  // -n the ranks
    CHECK(size("tp=8", 1, 3, 3) == numbers{2, 2});  // launchers
    CHECK(size("tp=4", 0, 2, 0) == numbers{2, 4});  // Slurm has not said
    CHECK(size("tp=4", 1, 0, 0) == numbers{0, 4});  // from outside of the job
    CHECK(size("tp=4", 5, 3, 6) == numbers{3, 4});  // nonsense in, no harm
}

TEST_CASE("a helper as large as the training makes its user wonder", "[spank]") {
    constexpr job_size job{2, 4};
    for (const auto& words :
         {step_words{.tasks = 4}, step_words{.tasks = 6},  // SLURM_NTASKS counts the spare's
          step_words{.min_nodes = 2, .max_nodes = 2}, step_words{.min_nodes = 3, .max_nodes = 3},
          step_words{.tasks_per_node = 2}, step_words{.nodelist = {"n01", "n02"}},
          step_words{.min_nodes = 2, .max_nodes = 2, .tasks = 4}}) {
        REQUIRE(helper_by_size(words, job));
        CHECK(helper_by_size(words, job)->as_large);
    }
}

TEST_CASE("a training that does not fit its plan is refused", "[spank]") {
    const auto j = job("tp=4", 2, {"n01", "n02", "n03"}, {"n02"});
    for (const auto& words :
         {step_words{.tasks = 2}, step_words{.min_nodes = 1, .max_nodes = 1}, step_words{.tasks_per_node = 4},
          step_words{.nodelist = {"n01"}}, step_words{.nodelist = {"n01", "n02", "n03"}},
          step_words{.min_nodes = 1, .max_nodes = 1, .tasks = 4}, step_words{.exclude = {"n01", "n03"}}})
        CHECK_FALSE(numbers_of_training(j, words));
    auto launchers = j;
    launchers.request.launchers = true;
    CHECK(numbers_of_training(launchers, {.tasks = 4}).error().text().find("srun --train -n 2") !=
          std::string::npos);
    // The plain step, too, once there are too few nodes for it.
    CHECK(numbers_of_training({j.request, {"n03"}, {}}, {}).error().text().find("--overlap") !=
          std::string::npos);
}

}  // namespace test_numbers
