// SPDX-License-Identifier: BSD-3-Clause
//
// An all-reduce over GPUs, by a mock of NVIDIA's libraries: no GPU is here.
#include "gpu_sweep.hpp"

namespace test_allreduce {

using namespace gpu_sweep;

TEST_CASE("without NCCL an all-reduce was not made", "[sweep]") {
    if (built_with_nccl()) return;
    const mock m("");
    const auto f = found("allreduce");
    CHECK(f.is == verdict::unknown);
    CHECK(text(f).find("not built with NCCL") != std::string::npos);
    CHECK(f.figures.empty());
}

TEST_CASE("an all-reduce is judged by its rate and its sums", "[sweep]") {
    CHECK(judge_allreduce(reduction{8, 400e9, {}}, 350, 0).is == verdict::fit);
    CHECK(judge_allreduce(reduction{8, 300e9, {}}, 350, 8).is == verdict::unfit);
    const auto wrong = judge_allreduce(reduction{8, 400e9, {"0000:2a:00.0"}}, 350, 8);
    CHECK(wrong.is == verdict::unfit);
    CHECK(wrong.what.front() == "GPU 0000:2a:00.0 has wrong sums after an all-reduce");
    CHECK(judge_allreduce(fail(errc::unavailable, "x"), 1, 8).is == verdict::unknown);
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
    const mock m("", "0");
    CHECK(found("allreduce").is == verdict::unknown);
}

TEST_CASE("an all-reduce of one GPU is left out", "[sweep]") {
    const mock m("", "1");
    settings one;
    one.gpus = 1;
    one.baseline = "/nowhere";
    const auto f = found("allreduce", one);
    INFO(text(f));
    CHECK(f.is == verdict::fit);
    CHECK(text(f).find("left out") != std::string::npos);
    CHECK(judge_allreduce(reduction{1}, 350, 0).is == verdict::fit);
    CHECK(judge_allreduce(reduction{1}, 350, 8).is == verdict::unknown);  // seven are missing
    if (!built_with_nccl()) return;
    CHECK(found("allreduce").is == verdict::fit);  // how many there should be is not said
    one.gpus = 2;
    CHECK(found("allreduce", one).is == verdict::unknown);
}

}  // namespace test_allreduce
