// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's looks at the HCAs' counters: in a process of its own, which may hang, crash or print nonsense.
#include <filesystem>
#include <fstream>

#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "fault/agent/counter_watch.hpp"
#include "fault/incident/engine.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"

namespace test_counter_watch {

using namespace banyan;
using namespace banyan::fault;
using namespace std::chrono_literals;

namespace {

class bench {
  public:
    banyan::testing::held_run time{1ms};  // a real process's answers are on their way
    std::filesystem::path dir = banyan::testing::scratch_path("looks");
    asio::io_context io;
    config settings = load_config({}, "n03").value();
    std::shared_ptr<metrics> counters = std::make_shared<metrics>();
    std::vector<kernel_fault> found;

    bench() {
        std::filesystem::remove_all(dir);
        std::filesystem::create_directories(dir);
        settings.hca_poll_interval = 10ms;
        settings.look_timeout = 5s;
        settings.look_program = (dir / "look").string();
        program("cat " + (dir / "told").string());
    }
    ~bench() { std::filesystem::remove_all(dir); }
    void program(const std::string& line) {
        const auto path = dir / "look.new";
        std::ofstream(path) << "#!/bin/sh\n" << line << "\n";
        ::chmod(path.c_str(), 0700);
        std::filesystem::rename(path, dir / "look");
    }
    void tell(const std::string& text) {
        std::ofstream(dir / "told.new") << text;
        std::filesystem::rename(dir / "told.new", dir / "told");
    }
    void tell(std::uint64_t errors) {
        hardware::port_counters port{"mlx5_0", "1", "0000:3b:00.0"};
        port.values["symbol_error"] = errors;
        tell(hardware::to_json({port}).dump());
    }
    counter_watch watch() {
        return {io, settings, counters,
                [this](kernel_fault fault, const std::string&) { found.push_back(std::move(fault)); }};
    }
    bool wait(const std::function<bool()>& so) { return time.until(io, so); }
};

event event_of(kernel_fault fault, std::uint64_t position) {
    event e;
    e.node = "n03";
    e.boot_id = "b";
    e.stream = "s";
    e.position = position;
    e.line_ms = 1'000'000;
    e.fault = std::move(fault);
    return e;
}

}  // namespace

TEST_CASE("a port whose errors rise too fast is an event of its HCA", "[fault]") {
    bench b;
    b.settings.hca_counters = {"symbol_error:120/1h"};
    b.tell(1);
    auto w = b.watch();
    w.start();
    REQUIRE(b.wait([&] { return w.ports() == 1; }));
    b.tell(1'000);
    REQUIRE(b.wait([&] { return !b.found.empty(); }));
    const auto& f = b.found.front();
    CHECK(f.kind == fault_kind::symptom);
    CHECK(f.code == static_cast<std::uint32_t>(catalog::symptom::hca_errors));
    CHECK(f.device == "0000:3b:00");
    CHECK(f.bdf == "0000:3b:00");
    CHECK(precedence_of(f) == precedence::alert);
    // It and the kernel's line on the same card are one incident.
    kernel_parser kernel;
    const auto line = kernel.line(
        "mlx5_core 0000:3b:00.0: Port module event[error]: module 0, Cable error, Bus stuck (I2C or data "
        "shorted)");
    REQUIRE(line.fault);
    engine e;
    const auto one = e.absorb(event_of(*line.fault, 1), 1);
    CHECK(e.absorb(event_of(f, 2), 1).number == one.number);
    CHECK(e.find(one.number)->reason == "hca-alert");
}

TEST_CASE("a look that hangs, crashes or prints nonsense is told, and the next one is done", "[fault]") {
    bench b;
    b.settings.hca_counters = {"symbol_error:120/1h"};
    auto w = b.watch();
    const auto says = [&](const std::string& what) {
        return
            [&w, what] { return !w.blind().empty() && w.blind().begin()->find(what) != std::string::npos; };
    };
    b.program("exec sleep 1000");
    w.start();
    CHECK(b.wait(says("no answer within 5 s")));
    b.program("kill -SEGV $$");
    CHECK(b.wait(says("crashed with signal 11")));
    b.program("exit 3");
    CHECK(b.wait(says("ended with code 3")));
    b.program("echo '[1,2'");
    CHECK(b.wait(says("did not print what it should")));
    b.program("echo '{\"ports\":[{\"device\":3}]}'");
    CHECK(b.wait(says("\"ports[0].device\" is 3")));
    b.program("echo '{\"error\":\"there is no /sys\"}'");
    CHECK(b.wait(says("there is no /sys")));
    b.program("exec yes 2>/dev/null");
    CHECK(b.wait(says("the answer is larger than")));
    b.program("exec >&-; exec sleep 1000");  // says nothing and stays
    CHECK(b.wait(says("did not print what it should")));
    b.program("cat " + (b.dir / "told").string());
    b.tell(1);
    CHECK(b.wait([&] { return w.blind().empty(); }));
    // A card that is gone is a figure, too.
    b.tell(R"({"ports":[]})");
    CHECK(b.wait(says("mlx5_0 port 1: it is not there any more")));
    CHECK(b.counters->text().find("banyan_fault_blind{of=\"hcas\"} 1\n") != std::string::npos);
}

TEST_CASE("no look is begun where none is wanted", "[fault]") {
    bench b;
    b.program("touch " + (b.dir / "looked").string());
    b.settings.hca_poll_interval = 0ms;
    auto none = b.watch();
    none.start();
    b.settings.hca_poll_interval = 10ms;
    b.settings.hca_counters.clear();
    auto nothing = b.watch();
    nothing.start();
    b.time.pass(b.io, 100ms);
    CHECK_FALSE(std::filesystem::exists(b.dir / "looked"));
}

}  // namespace test_counter_watch
