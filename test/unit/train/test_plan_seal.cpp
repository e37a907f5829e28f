// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <numeric>
#include <random>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../ckptd/cluster.hpp"
#include "common/munge.hpp"
#include "train/environment.hpp"
#include "train/plan_seal.hpp"

namespace test_plan_seal {

using namespace banyan;
using namespace banyan::train;

namespace {

/// One private munged for all cases.
const std::string& munge_socket() {
    static ckptd_test::cluster cluster([] {
        ckptd_test::cluster::options o;
        o.nodes = 0;
        return o;
    }());
    static const std::string socket = cluster.dir() + "/munge/socket";
    return socket;
}

enum class order { straight, scattered };

/// A job of `nodes`, named and addressed as sites do.
train::plan plan_of(std::uint32_t nodes, order how) {
    train::plan p;
    p.job = 4711;
    p.shape = fmt::format("tp=8,dp={}", nodes);
    p.ranks_per_node = 8;
    std::vector<std::uint32_t> at(nodes);
    std::iota(at.begin(), at.end(), 0u);
    std::mt19937 random(nodes);
    if (how == order::scattered) std::shuffle(at.begin(), at.end(), random);
    for (const auto i : at) {
        p.nodes.push_back(fmt::format("gpu-r{:03}-n{:02}", i / 16, i % 16));
        p.addrs.push_back(fmt::format("10.{}.{}.{}", 40 + i / 16384, i / 64 % 256, 1 + i % 64 * 3));
    }
    p.buddies.resize(nodes);
    for (std::uint32_t i = 0; i < nodes; ++i) p.buddies[i] = (i + nodes / 2) % nodes;
    if (how == order::scattered) std::shuffle(p.buddies.begin(), p.buddies.end(), random);
    return p;
}

std::string joined(const std::vector<std::string>& pieces) {
    return std::accumulate(pieces.begin(), pieces.end(), std::string());
}

/// What another user's process seals.
std::string sealed_by(uid_t uid, const train::plan& p) {
    int ends[2];
    if (::pipe(ends) != 0) return {};
    const auto child = ::fork();
    if (child == 0) {
        const bool other = ::setgid(uid) == 0 && ::setuid(uid) == 0;
        const auto sealed = seal_plan(munge_socket(), p);
        if (other && sealed && ::write(ends[1], sealed->data(), sealed->size()) > 0) ::_exit(0);
        ::_exit(1);
    }
    ::close(ends[1]);
    std::string out(64 * 1024, '\0');
    const auto got = ::read(ends[0], out.data(), out.size());
    ::close(ends[0]);
    ::waitpid(child, nullptr, 0);
    out.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return out;
}

}  // namespace

TEST_CASE("every form of the plan's name is known", "[spank]") {
    for (const auto* entry : {"BANYAN_PLAN=x", "BANYAN_PLAN", "SPANK_BANYAN_PLAN=x",
                              "SPANK_SPANK_BANYAN_PLAN=x", "BANYAN_PLAN_2=x", "SPANK_BANYAN_PLAN_7=",
                              "banyan_plan=x", "spank_Banyan_Plan=x", "BANYAN_PLAN2=x"})
        CHECK(names_plan(entry));
    for (const auto* entry : {"", "SPANK_", "BANYAN_PLA=BANYAN_PLAN", "A=BANYAN_PLAN=x", "_BANYAN_PLAN=x",
                              "_SLURM_SPANK_OPTION_banyan_train_ckpt=every=1"})
        CHECK_FALSE(names_plan(entry));
    for (std::size_t i = 0; i < max_plan_pieces; ++i) CHECK(names_plan(plan_variable(i)));
}

TEST_CASE("an environment is refused past each limit and not before", "[spank]") {
    const std::string entry(max_environment_entry, 'x'), longer(max_environment_entry + 1, 'x');
    std::vector<const char*> entries{entry.c_str(), nullptr};
    CHECK(check_environment(entries.data(), 2));
    entries[1] = longer.c_str();
    CHECK(check_environment(entries.data(), 2).error().what.find("an entry of 32769 bytes") !=
          std::string::npos);
    entries.assign(max_environment_bytes / max_environment_entry, entry.c_str());
    CHECK(check_environment(entries.data(), static_cast<std::uint32_t>(entries.size())));
    entries.push_back("x");
    CHECK_FALSE(check_environment(entries.data(), static_cast<std::uint32_t>(entries.size())));
    entries.assign(max_environment_entries, "A=x");
    CHECK(check_environment(entries.data(), static_cast<std::uint32_t>(entries.size())));
    CHECK_FALSE(check_environment(entries.data(), max_environment_entries + 1));
    CHECK(check_environment(nullptr, 0));
}

TEST_CASE("the largest environment and the largest plan start a program together", "[spank]") {
    const auto starts = [](const std::vector<std::string>& entries) {
        std::vector<char*> environment;
        for (const auto& entry : entries) environment.push_back(const_cast<char*>(entry.c_str()));
        environment.push_back(nullptr);
        const auto child = ::fork();
        if (child == 0) {
            const rlimit usual{8u << 20, RLIM_INFINITY};
            ::setrlimit(RLIMIT_STACK, &usual);
            char program[] = "/bin/true";
            char* const arguments[] = {program, nullptr};
            ::execve(program, arguments, environment.data());
            ::_exit(7);
        }
        int status = 0;
        ::waitpid(child, &status, 0);
        return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    };
    // As slurmd hands them on; its own variables come to less than another such entry.
    const std::string prefix = "SPANK_";
    std::vector<std::string> entries(max_environment_bytes / max_environment_entry + 1,
                                     prefix + std::string(max_environment_entry, 'x'));
    for (std::size_t i = entries.size(); i < max_environment_entries; ++i) entries.push_back(prefix + "A=");
    for (std::size_t i = 0; i < max_plan_pieces; ++i)
        entries.push_back(prefix + plan_variable(i) + "=" + std::string(max_plan_piece, 'x'));
    CHECK(starts(entries));
    // What Slurm would do without a limit.
    CHECK_FALSE(starts({std::string(135'000, 'x')}));
}

TEST_CASE("a sealed plan comes back with its writer, as often as it is read", "[spank]") {
    const auto p = plan_of(8, order::straight);
    const auto sealed = seal_plan(munge_socket(), p).value();
    for (int i = 0; i < 3; ++i) {
        const auto opened = open_plan(munge_socket(), sealed).value();
        CHECK(opened.writer == ::geteuid());
        CHECK(opened.what.job == 4711);
        CHECK(opened.what.nodes == p.nodes);
        CHECK(opened.what.addrs == p.addrs);
    }
}

TEST_CASE("what is not a sealed plan is refused", "[spank]") {
    const auto p = plan_of(8, order::straight);
    CHECK_FALSE(open_plan(munge_socket(), ""));
    CHECK_FALSE(open_plan(munge_socket(), train::to_text(p)));
    // The same user's credential for something else.
    const auto other = munge::encode(munge_socket(), train::to_text(p)).value();
    CHECK(open_plan(munge_socket(), other).error().code == errc::denied);
    const auto sealed = seal_plan(munge_socket(), p).value();
    CHECK_FALSE(open_plan(munge_socket(), sealed.substr(0, sealed.size() / 2)));
    std::mt19937 random(1);
    for (int i = 0; i < 50; ++i) {
        auto changed = sealed;
        // The last characters are padding and the closing colon.
        auto& c = changed[6 + random() % (sealed.size() - 12)];
        c = c == 'A' ? 'B' : 'A';
        CHECK_FALSE(open_plan(munge_socket(), changed));
    }
}

TEST_CASE("munge tells who else sealed a plan", "[spank]") {
    if (::geteuid() != 0) return;
    const auto forged = sealed_by(65534, plan_of(8, order::straight));
    REQUIRE_FALSE(forged.empty());
    CHECK(open_plan(munge_socket(), forged).value().writer == 65534);
}

TEST_CASE("a plan of all nodes of a large cluster fits, in pieces", "[spank]") {
    for (const auto how : {order::straight, order::scattered})
        for (const std::uint32_t nodes : {1024u, 8192u, 12800u}) {
            const auto p = plan_of(nodes, how);
            const auto sealed = seal_plan(munge_socket(), p).value();
            const auto pieces = pieces_of(sealed);
            INFO(nodes << (how == order::straight ? " in order: " : " scattered: ") << sealed.size()
                       << " bytes sealed, " << train::to_text(p).size() << " as text, " << pieces.size()
                       << " pieces");
            CHECK(sealed.size() < max_sealed_plan / 2);
            CHECK(pieces.size() <= max_plan_pieces);
            CHECK(std::all_of(pieces.begin(), pieces.end(),
                              [](auto& s) { return s.size() <= max_plan_piece; }));
            CHECK(joined(pieces) == sealed);
            CHECK(open_plan(munge_socket(), joined(pieces)).value().what.buddies == p.buddies);
        }
}

TEST_CASE("a plan that would not fit is refused", "[spank]") {
    auto p = plan_of(60000, order::scattered);
    const auto sealed = seal_plan(munge_socket(), p);
    REQUIRE_FALSE(sealed);
    CHECK(sealed.error().code == errc::exhausted);
}

}  // namespace test_plan_seal
