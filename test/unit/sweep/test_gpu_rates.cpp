// SPDX-License-Identifier: BSD-3-Clause
//
// What is measured with the GPUs, by a mock of NVIDIA's libraries: no GPU is here.
#include <cstdlib>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include "scratch_folder.hpp"
#include "sweep/golden_figures.hpp"
#include "sweep/pcie.hpp"
#include "sweep/print.hpp"
#include "sweep/run.hpp"

namespace test_gpu_rates {

using namespace banyan;
using namespace banyan::sweep;
using std::chrono::seconds;

namespace {

struct mock {
    explicit mock(const char* wrong, const char* gpus = "2") {
        ::setenv("BANYAN_MOCK", wrong, 1);
        ::setenv("BANYAN_MOCK_GPUS", gpus, 1);
    }
    ~mock() { ::unsetenv("BANYAN_MOCK"), ::unsetenv("BANYAN_MOCK_GPUS"); }
};

/// As the program does it: in a child process, which may hang or die.
report swept(const std::string& name, settings asked,
             std::chrono::steady_clock::duration within = seconds(60)) {
    const std::filesystem::path root =
        std::filesystem::temp_directory_path() / fmt::format("banyan-rates-{}", ::getpid());
    std::filesystem::create_directories(root / "run");
    sweep_options o;
    asked.pcie = std::max(asked.pcie, 1u);
    asked.allreduce = std::max(asked.allreduce, 1u);
    o.checks = choose(asked, {name}).value();
    o.where.asked = asked;
    o.where.root = root;
    o.where.measure_for = std::chrono::milliseconds(20);
    o.where.cuda = o.where.nccl = BANYAN_MOCK_NVIDIA;
    o.where.gpu_bytes = 1u << 20;
    o.even_if_busy = true;
    o.measuring = within;
    auto out = sweep_node(o, [] { return false; });
    std::filesystem::remove_all(root);
    return out;
}

finding found(const std::string& name, settings asked = {},
              std::chrono::steady_clock::duration within = seconds(60)) {
    return swept(name, std::move(asked), within).at(0).found;
}

std::string text(const finding& f) {
    std::string out;
    for (const auto& s : f.what) out += s + "\n";
    return out;
}

std::string figures_file(const scratch& in, double pcie, double allreduce) {
    const report r{{"pcie",
                    {verdict::fit,
                     {},
                     {{"pcie_to_gpu_bytes_per_second", pcie}, {"pcie_from_gpu_bytes_per_second", pcie}}}},
                   {"allreduce", {verdict::fit, {}, {{"allreduce_bytes_per_second", allreduce}}}}};
    const auto path = in.path / "figures.json";
    std::ofstream(path) << as_json_text(r, {});
    return path.string();
}

copy_rates rates(double to, double from) { return {"0000:1b:00.0", to * 1e9, from * 1e9}; }

}  // namespace

TEST_CASE("copies to and from every GPU are measured and looked at", "[sweep]") {
    const mock m("");
    const auto f = found("pcie");
    INFO(text(f));
    CHECK(text(f).find("of 2 GPUs the slowest is 0000:1") != std::string::npos);
    CHECK(f.figures.at("pcie_to_gpu_bytes_per_second") > 0);
    CHECK(f.figures.at("pcie_from_gpu_bytes_per_second") > 0);
    CHECK(as_metrics({{"pcie", f}}, 1).find("banyan_sweep_pcie_to_gpu_bytes_per_second ") !=
          std::string::npos);
}

TEST_CASE("a GPU whose copies are slow is named", "[sweep]") {
    CHECK(judge_copies({rates(25, 25), rates(24, 26)}, 20).is == verdict::fit);
    const auto slow = judge_copies({rates(25, 25), rates(25, 6.2)}, 20);
    CHECK(slow.is == verdict::unfit);
    CHECK(slow.what.front() == "GPU 0000:1b:00.0: 6.2 GB/s from it, expected 20");
    CHECK(slow.figures.at("pcie_from_gpu_bytes_per_second") == 6.2e9);
    const mock m("slow");
    const auto f = found("pcie");
    INFO(text(f));
    CHECK(f.is == verdict::unfit);
    CHECK(text(f).find("GPU 0000:1b:00.0: 0.") != std::string::npos);
}

TEST_CASE("a copy that comes back other is a broken node", "[sweep]") {
    const mock m("copy");
    const auto f = found("pcie");
    CHECK(f.is == verdict::unfit);
    CHECK(text(f).find("GPU 0000:1b:00.0: what was copied there came back other") != std::string::npos);
}

TEST_CASE("a GPU with an error of its own is a broken node, and the others are measured", "[sweep]") {
    const mock m("ecc");
    const auto f = found("pcie");
    CHECK(f.is == verdict::unfit);
    CHECK(text(f).find("uncorrectable ECC error") != std::string::npos);
    CHECK(f.figures.contains("pcie_to_gpu_bytes_per_second"));
}

TEST_CASE("what hangs or crashes was not looked at, and says where", "[sweep]") {
    {
        const mock m("hang");
        const auto f = found("pcie", {}, seconds(10));
        CHECK(f.is == verdict::unknown);
        CHECK(text(f).find("no answer within") != std::string::npos);
        CHECK(text(f).find("copying to GPU 1") != std::string::npos);
    }
    const mock m("crash");
    const auto f = found("pcie");
    CHECK(f.is == verdict::unknown);
    CHECK(text(f).find("crashed with signal 11: copying to GPU 1") != std::string::npos);
}

TEST_CASE("a node without the library, or without GPUs, is not fit", "[sweep]") {
    const auto gone = check_copies(open_copier("/nowhere/libcuda.so.1", "/", 1u << 20), 1, seconds(0));
    CHECK(gone.is == verdict::unknown);
    {
        const mock m("", "0");
        CHECK(found("pcie").is == verdict::unknown);
    }
    const mock m("none");
    CHECK(found("pcie").is == verdict::unfit);
}

TEST_CASE("bandwidths are held to those of a golden node", "[sweep]") {
    const scratch folder;
    settings s;
    s.figures_percent = 90;
    const mock m("");
    s.figures = figures_file(folder, 1, 1);
    const auto well = found("pcie", s);
    INFO(text(well));
    CHECK(text(well).find("golden") == std::string::npos);
    s.figures = figures_file(folder, 1e15, 1e15);
    const auto slow = found("pcie", s);
    CHECK(slow.is == verdict::unfit);
    CHECK(text(slow).find("expected 900000.0, 90 % of the golden node's 1000000.0") != std::string::npos);
    s.figures = (folder.path / "nothing").string();
    CHECK(text(found("pcie", s)).find("could not look") != std::string::npos);
    finding f{verdict::fit, {}, {{"memory_bandwidth_bytes_per_second", 5}, {"gpus", 8}}};
    hold_to(f, golden_figures{{"memory_bandwidth_bytes_per_second", 5}}, 100);
    CHECK(f.is == verdict::fit);
    hold_to(f, golden_figures{{"allreduce_bytes_per_second", 5}}, 100);
    CHECK(f.is == verdict::unknown);
    for (const char* wrong :
         {"", "[]", "{}", R"({"checks": 1})", R"({"checks": [{"figures": {"gpus": 8}}]})"})
        CHECK_FALSE(read_figures(wrong, "f"));
}

TEST_CASE("without NCCL an all-reduce was not made", "[sweep]") {
    if (built_with_nccl()) return;
    const mock m("");
    const auto f = found("allreduce");
    CHECK(f.is == verdict::unknown);
    CHECK(text(f).find("not built with NCCL") != std::string::npos);
    CHECK(f.figures.empty());
}

TEST_CASE("an all-reduce is judged by its rate and its sums", "[sweep]") {
    CHECK(judge_allreduce(reduction{8, 400e9, {}}, 350).is == verdict::fit);
    CHECK(judge_allreduce(reduction{8, 300e9, {}}, 350).is == verdict::unfit);
    const auto wrong = judge_allreduce(reduction{8, 400e9, {"0000:2a:00.0"}}, 350);
    CHECK(wrong.is == verdict::unfit);
    CHECK(wrong.what.front() == "GPU 0000:2a:00.0 has wrong sums after an all-reduce");
    CHECK(judge_allreduce(fail(errc::unavailable, "x"), 1).is == verdict::unknown);
}

TEST_CASE("an all-reduce over the GPUs: sums, hangs, errors", "[sweep]") {
    if (!built_with_nccl()) return;
    {
        const mock m("", "4");
        const auto f = found("allreduce");
        INFO(text(f));
        CHECK(f.figures.at("allreduce_bytes_per_second") > 0);
        CHECK(text(f).find("wrong sums") == std::string::npos);
        CHECK(text(f).find("over 4 GPUs") != std::string::npos);
    }
    {
        const mock m("sum");
        const auto f = found("allreduce");
        CHECK(f.is == verdict::unfit);
        CHECK(text(f).find("GPU 0000:1b:00.0 has wrong sums") != std::string::npos);
        CHECK(text(f).find("GPU 0000:1a:00.0 has wrong sums") == std::string::npos);
    }
    {
        const mock m("reduce-hang");
        CHECK(text(found("allreduce", {}, seconds(10))).find("an all-reduce over 2 GPUs") !=
              std::string::npos);
    }
    {
        const mock m("reduce-error");
        const auto f = found("allreduce");
        CHECK(f.is == verdict::unknown);
        CHECK(text(f).find("NCCL says unhandled system error") != std::string::npos);
    }
    const mock m("", "1");
    CHECK(found("allreduce").is == verdict::unknown);
}

}  // namespace test_gpu_rates
