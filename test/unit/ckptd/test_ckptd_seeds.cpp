// SPDX-License-Identifier: BSD-3-Clause
//
// Real daemons and ranks under seeded faults, round after round of one job: ranks killed, nodes lost alone
// and in pairs, daemons that hang and come back late, in a later launch as well, a network that is cut and
// healed, bits that flip in memory and in storage. What was acknowledged at a level that the faults leave
// standing must come back, to all ranks alike, byte by byte.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ckptd/buffers/rank_memory.hpp"
#include "cluster.hpp"

namespace test_ckptd_seeds {

using namespace ckptd_test;

namespace {

constexpr int slots = 4, all_nodes = slots + 1;
constexpr std::size_t small_state = 300'001;

class job {
  public:
    /// `net`: what may fail is the network and single bits; else processes. `two`: the ranks keep a second
    /// state, too.
    job(std::uint64_t seed, network* net, bool two)
        : random_(seed),
          lines_(two ? std::vector<line>{{""}, {"in ema "}} : std::vector<line>{{""}}),
          net_(net),
          cluster_({all_nodes, "", {}, {}, net}),
          flush_(pick({0, 0, 1, 2, 5})),
          storage_(flush_ == 0 ? "" : cluster_.dir() + "/store") {
        cluster_.open(cluster_.request(id, slots, 1, storage_, flush_));
        for (int node = 1; node <= slots; ++node) assigned_.push_back(node);
    }

    /// What does not hold; empty when everything does.
    std::string round() {
        cluster_.new_step(id, launch_++, assigned_);
        auto ranks = start_ranks(cluster_, id, assigned_, 1, small_state);
        // Either one first: that says nothing of the other.
        if (lines_.size() > 1 && below(2) == 0) std::swap(lines_[0], lines_[1]);
        for (auto& l : lines_)
            if (auto wrong = restore(ranks, l); !wrong.empty()) return wrong;
        train(ranks);
        net_ ? cut_or_flip(ranks) : fault(ranks);
        return {};
    }

  private:
    static constexpr std::uint64_t id = 77;

    /// Of a state; steps plus 1, 0 = none.
    struct line {
        std::string in;  ///< before each of its commands
        std::uint64_t step = 0, memory = 0, replicated = 0, durable = 0, floor = 0;
    };

    std::uint64_t below(std::uint64_t n) {
        return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_);
    }
    std::uint64_t pick(std::vector<std::uint64_t> of) { return of[below(of.size())]; }
    void pause(std::vector<std::uint64_t> of_ms) { pass(std::chrono::milliseconds(pick(std::move(of_ms)))); }

    std::string restore(std::vector<rank_process>& ranks, line& l) {
        for (auto& r : ranks) r.say(l.in + "restart");
        if (heal_) {
            pause({0, 100, 1000, 2500});
            std::exchange(heal_, nullptr)();
        }
        std::vector<answer> answers;
        for (auto& r : ranks) answers.push_back(r.hear());
        const std::vector<std::string> said(answers.begin(), answers.end());
        const auto told =
            fmt::format("launch {} on {}: {}{}; floor {}, {}", launch_ - 1, fmt::join(assigned_, " "), l.in,
                        fmt::join(said, ", "), l.floor, what_happened_);
        std::uint64_t first = 0;
        for (std::size_t i = 0; i < answers.size(); ++i) {
            const auto got = answers[i].restored();
            if (got.code != BCK_OK && got.code != BCK_E_NOTFOUND) return "not restored: " + told;
            if (got.code == BCK_OK && !got.same) return "another content: " + told;
            const auto state = got.code == BCK_OK ? got.step + 1 : 0;
            if (i == 0) first = state;
            if (state != first) return "ranks begin from different steps: " + told;
        }
        if (first < l.floor) return "an acknowledged step is lost: " + told;
        l.step = first == 0 ? 0 : first - 1;
        l.memory = first;
        l.replicated = 0;
        return {};
    }

    void train(std::vector<rank_process>& ranks) {
        const auto saves = (1 + below(7)) * lines_.size();
        for (std::uint64_t i = 0; i < saves; ++i) {
            auto& l = lines_[lines_.size() > 1 ? below(2) : 0];
            const auto saved = ask_all(ranks, fmt::format("{}save {}", l.in, ++l.step));
            if (std::any_of(saved.begin(), saved.end(), [](const auto& s) { return s != BCK_OK; })) continue;
            if (below(3) == 0) acknowledge(ranks, l, 2, l.replicated);
            if (below(3) == 0) acknowledge(ranks, l, 1, l.memory);
            if (flush_ != 0 && l.step % flush_ == 0 && below(3) == 0) acknowledge(ranks, l, 3, l.durable);
        }
    }

    /// One rank that hears it is enough: it counts for all.
    void acknowledge(std::vector<rank_process>& ranks, line& l, int level, std::uint64_t& into) {
        for (const auto& answer : ask_all(ranks, fmt::format("{}wait {} {} 4000", l.in, l.step, level)))
            if (answer == BCK_OK) into = std::max(into, l.step + 1);
        l.memory = std::max({l.memory, l.replicated, into});
    }

    /// What must come back of each state: what is in storage, and what was acknowledged in memory so.
    void must_come_back(std::uint64_t line::*level) {
        for (auto& l : lines_) l.floor = std::max(l.*level, l.durable);
    }
    void say_save(std::vector<rank_process>& ranks) {
        for (const auto& l : lines_)
            for (auto& r : ranks) r.say(fmt::format("{}save {}", l.in, l.step + 1));
    }

    void fault(std::vector<rank_process>& ranks) {
        const auto what = below(6);
        if (zombie_ != 0 && below(2) == 0) wake();
        if (what == 0) {  // some ranks, then the step's end
            for (auto& r : ranks)
                if (below(2) == 0) r.kill(), pause({0, 0, 5});
            what_happened_ = "ranks killed";
            must_come_back(&line::memory);
        } else if (what == 1) {  // a daemon hangs while the ranks save on
            const auto node = assigned_[below(slots)];
            cluster_.kill(node, SIGSTOP);
            say_save(ranks);
            pause({100, 500, 2500});
            cluster_.kill(node, SIGCONT);
            pause({0, 20, 300});
            what_happened_ = fmt::format("n{} hung", node);
            must_come_back(&line::memory);
        } else if (what == 2) {  // buddies together: what is in storage remains
            const auto slot = below(slots);
            // Of a silent node that may have what is lost, the ranks would wait for the word:
            // test_ckptd_late.
            if (zombie_ != 0) wake();
            for (const auto s : {slot, (slot + 1) % slots}) cluster_.kill(assigned_[s], SIGKILL);
            ranks.clear();
            for (const auto s : {slot, (slot + 1) % slots}) bring_back(assigned_[s]);
            what_happened_ = fmt::format("n{} and its buddy lost", assigned_[slot]);
            must_come_back(&line::durable);
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
            must_come_back(&line::replicated);
        }
    }

    void cut_or_flip(std::vector<rank_process>& ranks) {
        const auto what = below(7);
        const auto slot = below(slots);
        const auto node = assigned_[slot];
        must_come_back(&line::memory);
        if (zombie_ != 0 && below(2) == 0) net_->heal(std::exchange(zombie_, 0));
        if (what == 0) {  // cut off while the ranks save on
            net_->cut(node);
            say_save(ranks);
            pause({100, 500, 2500});
            net_->heal(node);
            what_happened_ = fmt::format("n{} was cut off", node);
        } else if (what == 1) {  // cut off when all restore
            net_->cut(node);
            heal_ = [this, node] { net_->heal(node); };
            what_happened_ = fmt::format("n{} is cut off at the restore", node);
        } else if (what == 2) {  // two that do not hear each other, while the others hear both
            const auto other = assigned_[(slot + 1 + below(slots - 1)) % slots];
            net_->cut(node, other);
            say_save(ranks);
            pause({0, 500});
            heal_ = [this, node, other] { net_->heal(node, other); };
            what_happened_ = fmt::format("n{} does not reach n{}", node, other);
        } else if (what == 3) {  // the spare takes its place; it is back in a later launch, or never
            if (zombie_ != 0) net_->heal(std::exchange(zombie_, 0));
            net_->cut(node);
            pause({0, 50, 300});
            ranks.clear();
            assigned_[slot] = spare_;
            zombie_ = spare_ = node;
            what_happened_ = fmt::format("n{} cut off for good", node);
            must_come_back(&line::replicated);
        } else if (what == 4) {  // the others' connections stay half open
            net_->cut(node);
            cluster_.kill(node, SIGKILL);
            ranks.clear();
            bring_back(node);
            net_->heal(node);
            what_happened_ = fmt::format("n{} lost behind a cut", node);
            must_come_back(&line::replicated);
        } else if (what == 5) {
            flip_memory(ranks, node);
        } else {
            flip_file();
        }
    }

    /// Bits in what lies checked in a node's memory: what its ranks have saved, or what it keeps for others.
    void flip_memory(std::vector<rank_process>& ranks, int node) {
        for (auto& l : lines_) acknowledge(ranks, l, 1, l.memory);
        for (const auto& l : lines_)
            if (l.memory != l.step + 1) return;  // something may not be checked yet
        const bool own = below(2) == 0;
        const auto name = fmt::format("/memfd:banyan-{}-{}-", own ? "buffers" : "replica", id);
        ranks.clear();
        int flipped = 0;
        for (const auto& fd :
             std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", cluster_.pid(node)))) {
            std::error_code ec;
            if (!std::filesystem::read_symlink(fd.path(), ec).string().starts_with(name)) continue;
            std::fstream memory(fd.path(), std::ios::in | std::ios::out | std::ios::binary);
            memory.seekg(0, std::ios::end);
            const auto bytes = static_cast<std::uint64_t>(memory.tellg());
            constexpr std::uint64_t header = banyan::ckpt::page_bytes;  // of a rank's buffers
            flip(memory, header + below(bytes - header));
            ++flipped;
        }
        must_come_back(own ? &line::replicated : &line::memory);
        what_happened_ = fmt::format("{} bits of n{} changed", flipped, node);
    }

    /// One in the newest step that is in storage; memory has what it had.
    void flip_file() {
        what_happened_ = "nothing";
        const auto rests_on_storage = [](const line& l) { return l.memory < l.durable; };
        if (storage_.empty() || std::any_of(lines_.begin(), lines_.end(), rests_on_storage)) return;
        std::vector<std::filesystem::path> files;
        for (const auto& file : std::filesystem::recursive_directory_iterator(storage_))
            if (file.path().extension() == ".safetensors" &&
                file.path().parent_path().filename().string().starts_with("step-"))
                files.push_back(file.path());
        if (files.empty()) return;
        std::sort(files.begin(), files.end());
        std::fstream file(files.back(), std::ios::in | std::ios::out | std::ios::binary);
        flip(file, below(std::filesystem::file_size(files.back())));
        what_happened_ = fmt::format("a bit of {} changed", files.back().string());
        for (auto& l : lines_) l.durable = 0;
    }

    void flip(std::fstream& of, std::uint64_t at) {
        of.seekg(static_cast<std::streamoff>(at));
        const auto byte = static_cast<char>(of.get() ^ (1 << below(8)));
        of.seekp(static_cast<std::streamoff>(at));
        of.put(byte);
        REQUIRE(of.flush().good());
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
    std::vector<line> lines_;
    network* net_;
    cluster cluster_;
    std::uint64_t flush_;
    std::string storage_;
    std::vector<int> assigned_;
    int spare_ = all_nodes, zombie_ = 0;
    std::function<void()> heal_;  ///< to be called while the ranks of the next launch restore
    std::uint32_t launch_ = 0;
    std::string what_happened_ = "nothing before";
};

void run(std::uint64_t first, std::uint64_t seeds, bool of_network = false, bool two = false) {
    for (auto seed = first; seed < first + seeds; ++seed) {
        const auto net = of_network ? std::make_unique<network>(all_nodes) : nullptr;
        job j(seed, net.get(), two);
        for (int round = 0; round < 8; ++round) {
            const auto wrong = j.round();
            INFO("seed " << seed << ", round " << round);
            REQUIRE(wrong == "");
        }
    }
}

/// Others with each BANYAN_SEED.
std::uint64_t first_of_soak() {
    const char* seed = std::getenv("BANYAN_SEED");
    return seed ? std::strtoull(seed, nullptr, 10) : 1000;
}

}  // namespace

TEST_CASE("seeded faults: what was acknowledged comes back, to all alike", "[ckptd]") { run(1, 5); }

TEST_CASE("seeded partitions and bit flips: the same", "[ckptd]") { run(1, 2, true); }

TEST_CASE("seeded faults under two states: each comes back by itself", "[ckptd]") { run(1, 2, false, true); }

TEST_CASE("500 rounds of seeded faults under two states", "[.soak]") {
    run(first_of_soak(), 63, false, true);
}

TEST_CASE("500 rounds of seeded faults", "[.soak]") { run(first_of_soak(), 63); }

TEST_CASE("500 rounds of seeded partitions and bit flips", "[.soak]") { run(first_of_soak(), 63, true); }

}  // namespace test_ckptd_seeds
