// SPDX-License-Identifier: BSD-3-Clause
//
// Lives of a controller over one history and a fake cluster.
#pragma once

#include <filesystem>

#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>

#include "fault/controller/controller.hpp"
#include "fault/policy/policy_file.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"
#include "test/unit/fault/fake_cluster.hpp"
#include "test/unit/fault/lines.hpp"

namespace banyan::fault::testing {

using banyan::testing::gate;
using banyan::testing::held_run;

class controller_bench {
  public:
    held_run time;
    std::filesystem::path dir = banyan::testing::scratch_path("controller");
    fake_state slurm;
    config settings = load_config({}, "n00").value();
    policy rules = shipped_policy();
    std::shared_ptr<metrics> figures = std::make_shared<metrics>();
    std::string reason;  // why the history was begun anew

    /// `on_its_way`: as held_run has it.
    explicit controller_bench(std::chrono::milliseconds on_its_way = {}) : time(on_its_way) {
        std::filesystem::create_directories(dir);
        settings.bind = "127.0.0.1";
        settings.port = 0;
        settings.history = (dir / "history.db").string();
        settings.avoid = (dir / "avoid.links").string();
        settings.dry_run = false;
        settings.sweep_on_its_way = std::chrono::milliseconds(200);
        for (const char* name : {"n01", "n02", "n03", "n04"}) slurm.nodes[name] = {name, false, false, ""};
    }
    ~controller_bench() { std::filesystem::remove_all(dir); }

    void job(std::uint32_t id, std::vector<std::string> nodes, result<std::optional<std::uint32_t>> needed) {
        job_status j;
        j.id = id;
        j.phase = job_phase::running;
        j.nodes = std::move(nodes);
        j.may_requeue = true;
        slurm.jobs[id] = j;
        slurm.needed[id] = std::move(needed);
    }
    /// One life of a controller: starts, takes the events, ends when the incidents are done.
    std::vector<incident> live(std::vector<event> events, incident_state also = incident_state::done) {
        asio::io_context io;
        asio::thread_pool pool(2);
        controller c(io, pool, settings, rules, figures, std::make_unique<fake_cluster>(slurm));
        const auto started = c.start();
        INFO((started ? "" : started.error().text()));
        REQUIRE(started);
        if (!events.empty()) asio::co_spawn(io, c.take_events("n03", std::move(events)), asio::detached);
        const auto begun = clock::now();
        const auto known = [&] {
            std::vector<incident> out;
            for (const auto& [number, i] : c.incidents().all()) out.push_back(i);
            return out;
        };
        const auto busy = [&] {
            return c.incidents().all().size() < at_least || clock::now() < begun + least ||
                   !enough(known()) || std::ranges::any_of(c.incidents().all(), [&](const auto& p) {
                       return p.second.state != incident_state::done && p.second.state != also;
                   });
        };
        time.pass(io, std::chrono::milliseconds(50));
        CHECK(time.until(io, [&] { return !busy(); }));
        time.pass(io, std::chrono::milliseconds(50));
        pool.join();
        c.finish();
        return known();
    }
    /// A controller's life in which an administrator rules on incident `number`.
    result<std::string> ruled(ruling what, std::uint64_t number = 1) {
        asio::io_context io;
        asio::thread_pool pool(2);
        controller c(io, pool, settings, rules, figures, std::make_unique<fake_cluster>(slurm));
        REQUIRE(c.start());
        result<std::string> answer = fail(errc::internal, "no answer");
        const auto ask = [&]() -> task<void> { answer = co_await c.rule_on(number, what, "uid 7"); };
        const auto run = [&] { time.pass(io, std::chrono::milliseconds(20)); };
        int asked = 0;
        do {
            run();  // at its start it looks at what is held by itself
            asio::co_spawn(io, ask(), asio::detached);
            run();
        } while (!answer && answer.error().text().find("try again") != std::string::npos && ++asked < 250);
        const auto busy = [&] {
            const auto& all = c.incidents().all();
            const auto i = all.find(number);
            return i != all.end() &&
                   (i->second.state == incident_state::acting || !i->second.approved_by.empty());
        };
        CHECK((!wait_for_it || time.until(io, [&] { return !busy(); })));
        pool.join();
        c.finish();
        kept.clear();
        for (const auto& [id, i] : c.incidents().all()) kept.push_back(i);
        return answer;
    }
    std::vector<incident> kept;  // after ruled()
    bool wait_for_it = true;
    std::size_t at_least = 1;  // incidents, until a life ends
    std::function<bool(const std::vector<incident>&)> enough = [](const auto&) { return true; };  // also
    std::chrono::milliseconds least{0};                                                           // of a life

    event xid79(std::uint64_t position = 1) {
        return event_of(gpu_line(3, "79, GPU has fallen off the bus."), clock::wall_ms(), position);
    }
};

/// One life of a controller, step by step.
class life {
  public:
    explicit life(controller_bench& b)
        : time(b.time), c(io, pool, b.settings, b.rules, b.figures, std::make_unique<fake_cluster>(b.slurm)) {
        const auto started = c.start();
        INFO((started ? "" : started.error().text()));
        REQUIRE(started);
    }
    ~life() {
        pool.join();
        c.finish();
    }
    life(const life&) = delete;
    void take(std::vector<event> events) {
        const auto node = events.at(0).node;
        asio::co_spawn(io, c.take_events(node, std::move(events)), asio::detached);
    }
    /// What is ready runs first, and what goes on without any more time runs then.
    bool until(const std::function<bool()>& so) {
        io.poll();
        const bool came = time.until(io, so);
        if (came) pass({});
        return came;
    }
    void pass(clock::duration some) { time.pass(io, some); }
    const incident* first() const {
        const auto& all = c.incidents().all();
        return all.empty() ? nullptr : &all.begin()->second;
    }
    bool is_done() const { return first() && first()->state == incident_state::done; }

    held_run& time;
    asio::io_context io;
    asio::thread_pool pool{2};
    controller c;
};

/// Results of its actions of that kind, in order.
inline std::string results_of(const incident& i, const std::string& what) {
    std::string out;
    for (const auto& a : i.actions)
        if (a.what == what) out += (out.empty() ? "" : "; ") + a.result;
    return out;
}

constexpr std::uint32_t with_spare = 3, without = 4;  // nodes that the job needs, of its four

}  // namespace banyan::fault::testing
