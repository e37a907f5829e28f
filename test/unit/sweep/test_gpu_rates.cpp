// SPDX-License-Identifier: BSD-3-Clause
//
// What is measured with the GPUs, by a mock of NVIDIA's libraries: no GPU is here.
#include <fstream>

#include "gpu_sweep.hpp"
#include "scratch_folder.hpp"
#include "sweep/baseline_figures.hpp"
#include "sweep/pcie.hpp"
#include "sweep/print.hpp"

namespace test_gpu_rates {

using namespace gpu_sweep;

namespace {

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

TEST_CASE("bandwidths are held to those of a baseline node", "[sweep]") {
    const scratch folder;
    settings s;
    s.baseline_percent = 90;
    const mock m("");
    s.baseline = figures_file(folder, 1, 1);
    const auto well = found("pcie", s);
    INFO(text(well));
    CHECK(text(well).find("baseline") == std::string::npos);
    s.baseline = figures_file(folder, 1e15, 1e15);
    const auto slow = found("pcie", s);
    CHECK(slow.is == verdict::unfit);
    CHECK(text(slow).find("expected 900000.0, 90 % of the baseline node's 1000000.0") != std::string::npos);
    s.baseline = (folder.path / "nothing").string();
    CHECK(text(found("pcie", s)).find("could not look") != std::string::npos);
    finding f{verdict::fit, {}, {{"memory_bandwidth_bytes_per_second", 5}, {"gpus", 8}}};
    hold_to(f, baseline_figures{{"memory_bandwidth_bytes_per_second", 5}}, 100);
    CHECK(f.is == verdict::fit);
    hold_to(f, baseline_figures{{"allreduce_bytes_per_second", 5}}, 100);
    CHECK(f.is == verdict::unknown);
    for (const char* wrong :
         {"", "[]", "{}", R"({"checks": 1})", R"({"checks": [{"figures": {"gpus": 8}}]})"})
        CHECK_FALSE(read_figures(wrong, "f"));
}

}  // namespace test_gpu_rates
