// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "fake_gpus.hpp"
#include "scratch_folder.hpp"

namespace test_gpus {

using namespace banyan;
using namespace banyan::sweep;

namespace {

gpu_health well(const std::string& id = "0000:1B:00.0") { return {id}; }

gpu_view view(std::vector<fake_gpus::health_answer> each) {
    return look_at_gpus("/", std::unique_ptr<gpu_library>(std::make_unique<fake_gpus>(std::move(each))));
}

const error no_library{errc::not_found, "NVIDIA's library is not on this node", "it comes with the driver"};

}  // namespace

TEST_CASE("as many GPUs as expected, all well", "[sweep]") {
    CHECK(judge_gpus(view({well(), well()}), 2, true).is == verdict::fit);
    CHECK(judge_gpus(view({well(), well()}), 1, true).is == verdict::fit);
    CHECK(judge_gpus(view({well()}), 2, true).is == verdict::unfit);
    CHECK(judge_gpus(view({}), 1, true).what.front() == "0 GPUs, expected 1");
}

TEST_CASE("a GPU that is lost, or whose memory is broken, is named", "[sweep]") {
    auto lost = well("0000:2A:00.0"), errors = lost, rows = lost;
    lost.lost = true, errors.uncorrected = 3, rows.remap_failed = true;
    for (const auto& bad : {lost, errors, rows}) {
        const auto found = judge_gpus(view({well(), bad}), 2, true);
        CHECK(found.is == verdict::unfit);
        CHECK(found.what.front().find("2A:00.0") != std::string::npos);
    }
    CHECK(judge_gpus(view({lost}), 1, false).is == verdict::unfit);
    CHECK(judge_gpus(view({errors}), 1, false).is == verdict::fit);
}

TEST_CASE("errors that cannot be asked for are not none", "[sweep]") {
    auto mute = well();
    mute.ecc_unknown = "Not Supported";
    CHECK(judge_gpus(view({mute}), 1, true).is == verdict::unknown);
    CHECK(judge_gpus(view({mute}), 1, false).is == verdict::fit);
    CHECK(judge_gpus(view({fail(errc::unavailable, "no answer")}), 1, false).is == verdict::unknown);
    CHECK(judge_gpus(view({mute}), 2, true).is == verdict::unfit);
}

TEST_CASE("without the library nothing is fine, and nothing is 0 GPUs", "[sweep]") {
    const scratch root;
    const auto looked = [&](bool ecc, std::uint32_t wanted = 2) {
        return judge_gpus(look_at_gpus(root.path, std::unexpected(no_library)), wanted, ecc);
    };
    CHECK(looked(false).is == verdict::unknown);
    CHECK(looked(false).what.front().find("0 GPUs") == std::string::npos);
    root.write("proc/driver/nvidia/gpus/0000:1b:00.0/information", "");
    root.write("proc/driver/nvidia/gpus/0000:2a:00.0/information", "");
    CHECK(looked(false).is == verdict::fit);
    CHECK(looked(true).is == verdict::unknown);
    CHECK(looked(false, 3).is == verdict::unfit);
}

TEST_CASE("a driver that is not loaded leaves no GPU", "[sweep]") {
    const auto looked = look_at_gpus("/", std::unexpected(error{errc::conflict, "Driver Not Loaded", {}}));
    CHECK(judge_gpus(looked, 1, false).is == verdict::unfit);
}

}  // namespace test_gpus
