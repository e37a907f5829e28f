// SPDX-License-Identifier: BSD-3-Clause
//
// Many saves on real daemons: what they hold after the last one is what they held early on.
#include <algorithm>
#include <filesystem>
#include <iterator>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/stat.h>

#include "cluster.hpp"
#include "common/file.hpp"

namespace test_ckptd_soak {

using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t small_state = 20'000;

struct held_by {
    std::size_t resident_kib = 0, descriptors = 0, memfds = 0, mappings = 0;
};

held_by look(pid_t pid) {
    held_by out;
    const auto proc = fmt::format("/proc/{}", pid);
    const auto status = banyan::read_file(proc + "/status", 1 << 20);
    REQUIRE(status);
    const auto at = status->find("VmRSS:");
    REQUIRE(at != std::string::npos);
    out.resident_kib = std::stoul(status->substr(at + 6));
    for (const auto& e : fs::directory_iterator(proc + "/fd")) {
        std::error_code gone;
        ++out.descriptors;
        if (fs::read_symlink(e.path(), gone).string().starts_with("/memfd:")) ++out.memfds;
    }
    const auto maps = banyan::read_file(proc + "/maps", 1 << 24);
    REQUIRE(maps);
    out.mappings = static_cast<std::size_t>(std::count(maps->begin(), maps->end(), '\n'));
    return out;
}

std::size_t files_below(const std::string& dir) {
    return static_cast<std::size_t>(std::distance(fs::recursive_directory_iterator(dir), {}));
}

void soak(int saves, int flush_every) {
    cluster c({2, "", {}});
    const auto dir = c.dir() + "/storage";
    REQUIRE(::mkdir(dir.c_str(), 0700) == 0);
    c.open(c.request(1, 2, 1, dir, static_cast<std::uint64_t>(flush_every)));
    auto ranks = start_ranks(c, 1, {1, 2}, 1, small_state);
    const int early = saves / 10;
    std::vector<held_by> before;
    const auto settle = [&](int step) {
        // Of the last step that is flushed: the storage threads have nothing to do any more.
        all_are(ask_all(ranks, fmt::format("wait {} 3 60000", step)), BCK_OK);
    };
    for (int step = 1; step <= saves; ++step) {
        all_are(ask_all(ranks, fmt::format("save {}", step)), BCK_OK);
        all_are(ask_all(ranks, fmt::format("wait {} 2 60000", step)), BCK_OK);
        if (step != early && step != saves) continue;
        settle(step);
        if (step == saves) break;
        for (const int node : {1, 2}) before.push_back(look(c.pid(node)));
    }
    for (const int node : {1, 2}) {
        const auto& then = before[static_cast<std::size_t>(node - 1)];
        held_by now;
        // Steps that are overtaken go a while after the ranks have heard of the newest.
        CHECK(eventually([&] {
            now = look(c.pid(node));
            return now.descriptors <= then.descriptors && now.memfds <= then.memfds;
        }));
        if (saves > 10'000)
            WARN(
                fmt::format("node {} after {} and {} saves: {} and {} KiB, {} and {} descriptors, {} and {} "
                            "memfds, {} and {} mappings",
                            node, early, saves, then.resident_kib, now.resident_kib, then.descriptors,
                            now.descriptors, then.memfds, now.memfds, then.mappings, now.mappings));
        CHECK(now.resident_kib < then.resident_kib + 2048);
        CHECK(now.mappings <= then.mappings + 16);  // of threads' heaps
    }
    // The claim, `latest`, and the steps that are kept, each with two files, manifest and COMMIT.
    CHECK(eventually([&] { return files_below(dir) <= 2 + 2 * 5; }));
}

}  // namespace

TEST_CASE("1,000 saves leave nothing behind", "[ckptd]") { soak(1'000, 100); }
TEST_CASE("100,000 saves leave nothing behind", "[.soak]") { soak(100'000, 1'000); }

}  // namespace test_ckptd_soak
