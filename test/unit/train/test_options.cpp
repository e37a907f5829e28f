// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "train/components.hpp"
#include "train/launchers.hpp"
#include "train/options.hpp"

namespace test_options {

using namespace banyan;
using namespace banyan::train;

namespace {

result<options> read(std::initializer_list<const char*> entries) {
    env_reader reader;
    for (const auto* entry : entries) reader.take(entry);
    return reader.finish();
}

}  // namespace

TEST_CASE("a job without our options has none", "[spank]") {
    const auto none = read({"PATH=/bin", "_SLURM_SPANK_OPTION_other_x=1"}).value();
    CHECK_FALSE(none.parallel);
    CHECK(none.spares == 0);
    CHECK_FALSE(none.checkpoint);
}

TEST_CASE("all options of a training job", "[spank]") {
    const auto o = read({"_SLURM_SPANK_OPTION_banyan_train_parallel=tp=2,pp=2,dp=4",
                         "_SLURM_SPANK_OPTION_banyan_train_spares=1",
                         "_SLURM_SPANK_OPTION_banyan_train_model=hidden=4096,layers=32",
                         "_SLURM_SPANK_OPTION_banyan_train_ckpt=dir=/lustre/"
                         "run1,every=2,flush=50,milestone=1000,size=64M"})
                       .value();
    REQUIRE(o.parallel);
    CHECK(o.parallel->ranks() == 16);
    CHECK(o.spares == 1);
    REQUIRE(o.model);
    CHECK(o.model->hidden == 4096);
    CHECK(o.model->layers == 32);
    REQUIRE(o.checkpoint);
    CHECK(o.checkpoint->directory == "/lustre/run1");
    CHECK(o.checkpoint->every == 2);
    CHECK(o.checkpoint->flush == 50);
    CHECK(o.checkpoint->milestone == 1000);
    CHECK(o.checkpoint->bytes == 64u << 20);
}

TEST_CASE("shapes that are refused, each with a reason", "[spank]") {
    for (const auto* bad : {"", "tp", "tp=", "tp=0", "tp=-1", "tp=2,tp=4", "xp=2", "tp=1000000000000000000",
                            "tp=2,,dp=2", "tp=4294967296", "tp=65536,dp=65536,pp=65536", "tp=2 dp=2"}) {
        INFO(bad);
        const auto checked = check(parallel, bad);
        REQUIRE_FALSE(checked);
        CHECK(checked.error().what.starts_with("--train-parallel: "));
    }
    CHECK_FALSE(check(parallel, std::string(1 << 20, 'x')));
}

TEST_CASE("checkpoint keys that are refused", "[spank]") {
    for (const auto* bad :
         {"", "dir", "dir=relative", "every=0", "evry=1", "every=x", "flush=10", "dir=/a,every=3,flush=10",
          "every=1,every=2", "dir=/a,milestone=10", "milestone=x", "dir=/a\nb", "dir=/a\x1b[2J", "size=many",
          "size=9999T", "size=17T", "every=99999999999999999999"}) {
        INFO(bad);
        const auto checked = check(checkpoint, bad);
        REQUIRE_FALSE(checked);
        CHECK(checked.error().what.starts_with("--train-ckpt: "));
        CHECK_FALSE(checked.error().hint.empty());
    }
    CHECK(check(checkpoint, "evry=1").error().hint == "did you mean every?");
}

TEST_CASE("model keys that are refused", "[spank]") {
    for (const auto* bad : {"", "hidden", "hidden=0", "hiden=8192", "layers=-1", "micro=1,micro=2"}) {
        INFO(bad);
        const auto checked = check(model, bad);
        REQUIRE_FALSE(checked);
        CHECK(checked.error().what.starts_with("--train-model: "));
    }
    CHECK(check(model, "hiden=8192").error().hint == "did you mean hidden?");
}

TEST_CASE("a wait is some minutes, a week at most", "[spank]") {
    CHECK(read({"_SLURM_SPANK_OPTION_banyan_train_wait=90"}).value().wait_minutes == 90);
    CHECK(read({}).value().wait_minutes == 0);
    CHECK(check(wait, "10080"));
    for (const auto* bad : {"", "-1", "1h", "10081", "99999999999999999999"}) {
        INFO(bad);
        const auto checked = check(wait, bad);
        REQUIRE_FALSE(checked);
        CHECK(checked.error().what.starts_with("--train-wait: "));
    }
}

TEST_CASE("spares are a small number", "[spank]") {
    CHECK(check(spares, "2"));
    for (const auto* bad : {"", "-1", "1.5", "1025", "many"}) CHECK_FALSE(check(spares, bad));
}

TEST_CASE("launchers are one task a node, said so, for several ranks each", "[spank]") {
    const auto shape = banyan::topo::parse_shape("tp=8,dp=4").value();
    struct row {
        std::uint32_t nodes, tasks, tasks_per_node;
        bool launchers;
    };
    for (const auto& [nodes, tasks, per_node, launchers] :
         {row{4, 0, 1, true}, row{4, 5, 1, true},  // --ntasks-per-node=1 counts the spare's, too
          row{4, 4, 0, true}, row{1, 1, 0, true}, row{1, 0, 1, true},
          row{4, 0, 0, false},  // nothing said: ranks
          row{4, 32, 0, false}, row{4, 32, 8, false}, row{4, 4, 8, false}, row{4, 5, 0, false},
          row{32, 32, 1, false},  // a rank a node
          row{3, 3, 1, false}, row{64, 64, 1, false}, row{0, 0, 1, false}})
        CHECK(banyan::train::asks_for_launchers(shape, nodes, tasks, per_node) == launchers);
}

TEST_CASE("the variables of a component bear its number", "[spank]") {
    using namespace banyan::train;
    CHECK(component_variable(parallel, 0) == "BANYAN_TRAIN_PARALLEL_HET_GROUP_0");
    CHECK(component_variable(checkpoint, 12) == "BANYAN_TRAIN_CKPT_HET_GROUP_12");
}

}  // namespace test_options
