// SPDX-License-Identifier: BSD-3-Clause
//
// Which nodes are called silent, by what answers there and by how many others are gone.
#include <boost/asio/executor_work_guard.hpp>
#include <catch2/catch.hpp>

#include "fault/controller/silence.hpp"
#include "test/unit/fault/fake_cluster.hpp"

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::uint16_t nobody_listens = 1;
constexpr std::size_t agents = 12;  // so that three may be gone together

struct watched {
    explicit watched(std::chrono::milliseconds at_once) : at_once_(at_once) {
        for (int n = 1; n <= 9; ++n) {
            const auto name = "n" + std::to_string(n);
            slurm.nodes[name] = {name, false, false, ""};
            slurm.nodes[name].address = "127.0.0.1";
            slurm.nodes[name].port = nobody_listens;
        }
    }
    ~watched() { pool.join(); }
    watched(const watched&) = delete;

    void gone(std::initializer_list<const char*> nodes) {
        for (const auto* node : nodes) watch.gone(node, agents);
    }

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

constexpr auto long_enough = 5s;  // to judge hosts that refuse

}  // namespace

TEST_CASE("nodes that were gone before hide none that is silent now", "[fault]") {
    watched w(1s);
    for (const char* node : {"n1", "n2"}) w.slurm.nodes[node].down = true;
    w.slurm.nodes["n3"].drained = true;
    w.slurm.nodes["n4"].planned = true;
    w.gone({"n1", "n2", "n3", "n4"});
    w.io.run_for(2s);
    w.gone({"n5"});
    w.io.run_for(long_enough);
    CHECK(w.silent == std::vector<std::string>{"n5"});
}

TEST_CASE("nodes that are meant to be gone hide none that is silent", "[fault]") {
    watched w(10min);
    for (const char* node : {"n1", "n2", "n3"}) w.slurm.nodes[node].planned = true;
    w.slurm.nodes["n4"].drained = true;  // and no job has it
    w.gone({"n1", "n2", "n3", "n4"});
    w.io.run_for(2s);
    w.gone({"n5"});
    w.io.run_for(long_enough);
    CHECK(w.silent == std::vector<std::string>{"n5"});
}

TEST_CASE("nodes that are gone together are not called silent, however long it lasts", "[fault]") {
    SECTION("all of them are followed") {
        watched w(4s);
        w.gone({"n1", "n2", "n3", "n4"});
        w.io.run_for(long_enough);
        CHECK(w.silent.empty());
        // As one is back, too few are left for that.
        w.watch.back("n1");
        w.io.run_for(long_enough + 1s);
        std::ranges::sort(w.silent);
        CHECK(w.silent == std::vector<std::string>{"n2", "n3", "n4"});
    }
    SECTION("Slurm has set some of them down") {
        watched w(10min);
        for (const char* node : {"n1", "n2", "n3"}) w.slurm.nodes[node].down = true;
        w.gone({"n1", "n2", "n3", "n4"});
        w.io.run_for(long_enough);
        CHECK(w.silent.empty());
    }
}
