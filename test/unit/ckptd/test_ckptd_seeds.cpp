// SPDX-License-Identifier: BSD-3-Clause
//
// Real daemons and ranks under seeded faults, round after round of one job: ranks killed, nodes lost alone
// and in pairs, daemons that hang and come back late, in a later launch as well, memory that changes. What
// was acknowledged at a level that the faults leave standing must come back, to all ranks alike, byte by
// byte.
#include <algorithm>
#include <csignal>
#include <random>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "cluster.hpp"

using namespace ckptd_test;

namespace {

constexpr int slots = 4, all_nodes = slots + 1;
constexpr std::size_t small_state = 300'001;

class job {
  public:
    explicit job(std::uint64_t seed)
        : random_(seed),
          cluster_({all_nodes, "", {}}),
          flush_(pick({0, 0, 1, 2, 5})),
          storage_(flush_ == 0 ? "" : cluster_.dir() + "/store") {
        cluster_.open(cluster_.request(id, slots, 1, storage_, flush_));
        for (int node = 1; node <= slots; ++node) assigned_.push_back(node);
    }

    /// What does not hold; empty when everything does.
    std::string round() {
        cluster_.new_step(id, launch_++, assigned_);
        auto ranks = start_ranks(cluster_, id, assigned_, 1, small_state);
        if (auto wrong = restore(ranks); !wrong.empty()) return wrong;
        train(ranks);
        fault(ranks);
        return {};
    }

  private:
    static constexpr std::uint64_t id = 77;

    std::uint64_t below(std::uint64_t n) {
        return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_);
    }
    std::uint64_t pick(std::vector<std::uint64_t> of) { return of[below(of.size())]; }
    void pause(std::vector<std::uint64_t> of_ms) {
        std::this_thread::sleep_for(std::chrono::milliseconds(pick(std::move(of_ms))));
    }

    std::string restore(std::vector<rank_process>& ranks) {
        const auto answers = ask_all(ranks, "restart");
        const auto told =
            fmt::format("launch {} on {}: {}; floor {}, {}", launch_ - 1, fmt::join(assigned_, " "),
                        fmt::join(answers, ", "), floor_, what_happened_);
        std::uint64_t first = 0;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            std::istringstream words(answers[i]);
            std::string result;
            std::uint64_t step = 0, source = 0, same = 0;
            words >> result >> step >> source >> same;
            if (result != "0" && result != "-3") return "not restored: " + told;
            if (result == "0" && same != 1) return "another content: " + told;
            const auto state = result == "0" ? step + 1 : 0;
            if (i == 0) first = state;
            if (state != first) return "ranks begin from different steps: " + told;
        }
        if (first < floor_) return "an acknowledged step is lost: " + told;
        step_ = first == 0 ? 0 : first - 1;
        memory_ = first;
        replicated_ = 0;
        return {};
    }

    void train(std::vector<rank_process>& ranks) {
        const auto saves = 1 + below(7);
        for (std::uint64_t i = 0; i < saves; ++i) {
            const auto saved = ask_all(ranks, fmt::format("save {}", ++step_));
            if (std::any_of(saved.begin(), saved.end(), [](const auto& s) { return s != "0"; })) continue;
            if (below(3) == 0) acknowledge(ranks, 2, replicated_);
            if (below(3) == 0) acknowledge(ranks, 1, memory_);
            if (flush_ != 0 && step_ % flush_ == 0 && below(3) == 0) acknowledge(ranks, 3, durable_);
        }
    }

    /// One rank that hears it is enough: it counts for all.
    void acknowledge(std::vector<rank_process>& ranks, int level, std::uint64_t& into) {
        for (const auto& answer : ask_all(ranks, fmt::format("wait {} {} 4000", step_, level)))
            if (answer == "0") into = std::max(into, step_ + 1);
        memory_ = std::max({memory_, replicated_, into});
    }

    void fault(std::vector<rank_process>& ranks) {
        const auto what = below(6);
        if (zombie_ != 0 && below(2) == 0) wake();
        if (what == 0) {  // some ranks, then the step's end
            for (auto& r : ranks)
                if (below(2) == 0) r.kill(), pause({0, 0, 5});
            what_happened_ = "ranks killed";
            floor_ = std::max(memory_, durable_);
        } else if (what == 1) {  // a daemon hangs while the ranks save on
            const auto node = assigned_[below(slots)];
            cluster_.kill(node, SIGSTOP);
            for (auto& r : ranks) r.say(fmt::format("save {}", step_ + 1));
            pause({100, 500, 2500});
            cluster_.kill(node, SIGCONT);
            pause({0, 20, 300});
            what_happened_ = fmt::format("n{} hung", node);
            floor_ = std::max(memory_, durable_);
        } else if (what == 2) {  // buddies together: what is in storage remains
            const auto slot = below(slots);
            for (const auto s : {slot, (slot + 1) % slots}) cluster_.kill(assigned_[s], SIGKILL);
            ranks.clear();
            for (const auto s : {slot, (slot + 1) % slots}) bring_back(assigned_[s]);
            what_happened_ = fmt::format("n{} and its buddy lost", assigned_[slot]);
            floor_ = durable_;
        } else {  // a node, dead or only silent; the spare takes its place
            const auto slot = below(slots);
            const auto lost = assigned_[slot];
            const bool hangs = what == 3 && zombie_ == 0;
            if (below(2) == 0) ranks[slot].kill();
            cluster_.kill(lost, hangs ? SIGSTOP : SIGKILL);
            pause({0, 0, 50, 300});
            ranks.clear();
            if (zombie_ != 0) wake();
            assigned_[slot] = spare_;
            spare_ = lost;
            if (hangs)
                zombie_ = lost;
            else
                bring_back(lost);
            what_happened_ = fmt::format("n{} {}", lost, hangs ? "hangs" : "lost");
            floor_ = std::max(replicated_, durable_);
        }
    }

    /// It wakes in a later launch than it knows of.
    void wake() {
        cluster_.kill(std::exchange(zombie_, 0), SIGCONT);
        pause({0, 50});
    }
    void bring_back(int node) {
        REQUIRE(cluster_.start(node));
        auto r = cluster_.request(id, slots, 1, storage_, flush_);
        r.self = cluster_.name(node);
        REQUIRE(banyan::ckpt::session_open(cluster_.socket(node), r, 10s));
    }

    std::mt19937_64 random_;
    cluster cluster_;
    std::uint64_t flush_;
    std::string storage_;
    std::vector<int> assigned_;
    int spare_ = all_nodes, zombie_ = 0;
    std::uint32_t launch_ = 0;
    // Steps plus 1; 0 = none.
    std::uint64_t step_ = 0, memory_ = 0, replicated_ = 0, durable_ = 0, floor_ = 0;
    std::string what_happened_ = "nothing before";
};

void run(std::uint64_t first, std::uint64_t seeds) {
    for (auto seed = first; seed < first + seeds; ++seed) {
        job j(seed);
        for (int round = 0; round < 8; ++round) {
            const auto wrong = j.round();
            INFO("seed " << seed << ", round " << round);
            REQUIRE(wrong == "");
        }
    }
}

}  // namespace

TEST_CASE("seeded faults: what was acknowledged comes back, to all alike", "[ckptd]") { run(1, 5); }

TEST_CASE("500 rounds of seeded faults", "[.soak]") { run(1000, 63); }
