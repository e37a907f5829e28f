// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes are called silent, by what answers there and by how many others are gone.
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>

#include "fault/controller/silence.hpp"
#include "test/held_run.hpp"
#include "test/unit/fault/fake_cluster.hpp"

namespace test_silence {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t nobody_listens = 1;
constexpr std::size_t agents = 12;  // so that three may be gone together
constexpr auto long_enough = 5s;    // to judge hosts that refuse

struct watched {
    explicit watched(std::chrono::milliseconds at_once) : at_once_(at_once) {
        for (int n = 1; n <= 9; ++n) {
            const auto name = "n" + std::to_string(n);
            slurm.nodes[name] = {name, false, false, ""};
            slurm.nodes[name].address = "127.0.0.1";
            slurm.nodes[name].port = nobody_listens;
            watch.back(name);
        }
    }
    ~watched() { pool.join(); }
    watched(const watched&) = delete;

    void gone(std::initializer_list<const char*> nodes) {
        for (const auto* node : nodes) watch.gone(node, agents);
    }

    banyan::testing::held_run time{1ms};
    std::chrono::milliseconds at_once_;
    fake_state slurm;
    asio::io_context io;
    asio::executor_work_guard<asio::io_context::executor_type> more_may_come{io.get_executor()};
    asio::thread_pool pool{2};
    fake_cluster cluster{slurm};
    std::vector<std::string> silent;
    silence_watch watch{io,
                        pool,
                        cluster,
                        nobody_listens,
                        [this](const std::string& node, const std::string&) { silent.push_back(node); },
                        at_once_};
};

/// A cluster that has no other agents.
struct small_cluster {
    small_cluster(watched& of, std::vector<std::string> all, const std::vector<std::string>& gone)
        : nodes(std::move(all)),
          watch(of.io, of.pool, of.cluster, nobody_listens,
                [this](const std::string& node, const std::string&) { silent.push_back(node); }) {
        for (const auto& node : nodes) watch.back(node);
        for (const auto& node : gone) watch.gone(node, nodes.size());
    }
    small_cluster(const small_cluster&) = delete;

    std::vector<std::string> found() {
        for (const auto& node : nodes) watch.back(node);
        std::ranges::sort(silent);
        return silent;
    }

    std::vector<std::string> nodes, silent;
    silence_watch watch;
};

}  // namespace

TEST_CASE("nodes that were gone before hide none that is silent now", "[fault]") {
    watched w(1s);
    for (const char* node : {"n1", "n2"}) w.slurm.nodes[node].down = true;
    w.slurm.nodes["n3"].drained = true;
    w.slurm.nodes["n4"].planned = true;
    w.gone({"n1", "n2", "n3", "n4"});
    w.time.pass(w.io, 2s);
    w.gone({"n5"});
    // Looked at after half a second, and called silent when its host has refused for two and a half.
    w.time.pass(w.io, 2'900ms);
    CHECK(w.silent.empty());
    w.time.pass(w.io, 200ms);
    CHECK(w.silent == std::vector<std::string>{"n5"});
}

TEST_CASE("nodes that are meant to be gone hide none that is silent", "[fault]") {
    watched w(10min);
    for (const char* node : {"n1", "n2", "n3"}) w.slurm.nodes[node].planned = true;
    w.slurm.nodes["n4"].drained = true;  // and no job has it
    w.gone({"n1", "n2", "n3", "n4"});
    w.time.pass(w.io, 2s);
    w.gone({"n5"});
    w.time.pass(w.io, long_enough);
    CHECK(w.silent == std::vector<std::string>{"n5"});
}

TEST_CASE("nodes that are gone together are not called silent, however long it lasts", "[fault]") {
    SECTION("all of them are followed") {
        watched w(4s);
        w.gone({"n1", "n2", "n3", "n4"});
        w.time.pass(w.io, long_enough);
        CHECK(w.silent.empty());
        // As one is back, too few are left for that.
        w.watch.back("n1");
        w.time.pass(w.io, long_enough + 1s);
        std::ranges::sort(w.silent);
        CHECK(w.silent == std::vector<std::string>{"n2", "n3", "n4"});
    }
    SECTION("Slurm has set some of them down") {
        watched w(10min);
        for (const char* node : {"n1", "n2", "n3"}) w.slurm.nodes[node].down = true;
        w.gone({"n1", "n2", "n3", "n4"});
        w.time.pass(w.io, long_enough);
        CHECK(w.silent.empty());
    }
}

TEST_CASE("where every agent of a small cluster is gone no node is called silent", "[fault]") {
    using names = std::vector<std::string>;
    watched w(10min);
    w.slurm.nodes["n7"].down = w.slurm.nodes["n8"].planned = true;
    asio::ip::tcp::acceptor slurmd(w.io, {asio::ip::make_address("127.0.0.1"), 0});
    w.slurm.nodes["n9"].port = slurmd.local_endpoint().port();

    small_cluster two(w, {"n1", "n2"}, {"n1", "n2"}), three(w, {"n1", "n2", "n3"}, {"n1", "n2", "n3"});
    small_cluster others_are_out(w, {"n1", "n7", "n8"}, {"n1", "n7", "n8"});
    small_cluster one_of_two(w, {"n1", "n2"}, {"n1"}), two_of_three(w, {"n1", "n2", "n3"}, {"n1", "n2"});
    small_cluster one_answers(w, {"n1", "n9"}, {"n1", "n9"});  // without its agent
    small_cluster single(w, {"n1"}, {"n1"});                   // nobody else could tell
    w.time.pass(w.io, long_enough + 3s);

    CHECK(two.found().empty());
    CHECK(three.found().empty());
    CHECK(others_are_out.found().empty());
    CHECK(one_of_two.found() == names{"n1"});
    CHECK(two_of_three.found() == names{"n1", "n2"});
    CHECK(one_answers.found() == names{"n1"});
    CHECK(single.found() == names{"n1"});
    w.time.pass(w.io, 3s);  // none is followed any more
}

}  // namespace test_silence
