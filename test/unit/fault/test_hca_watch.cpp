// SPDX-License-Identifier: BSD-3-Clause
//
// What the HCAs tell by libibverbs: by a mock of the library, by the process that listens, and as incidents.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <infiniband/verbs.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "fault/agent/hca_watch.hpp"
#include "fault/incident/engine.hpp"
#include "test/built.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"

namespace test_hca_watch {

using namespace banyan;
using namespace banyan::fault;
using namespace std::chrono_literals;
using hardware::hca_event;
using hardware::hca_news;

namespace {

class bench {
  public:
    banyan::testing::held_run time{1ms};  // a real process's answers are on their way
    std::filesystem::path dir = banyan::testing::scratch_path("verbs");
    std::filesystem::path fabric = dir / "verbs";
    asio::io_context io;
    config settings = load_config({}, "n03").value();
    std::vector<kernel_fault> found;

    bench() {
        std::filesystem::remove_all(dir);
        std::filesystem::create_directories(fabric);
        ::setenv("MOCK_VERBS", fabric.c_str(), 1);
        settings.look_program = (dir / "listen").string();
        settings.look_timeout = 1s;
    }
    ~bench() { std::filesystem::remove_all(dir); }
    void add(const std::string& device, const std::string& state = "4: ACTIVE") {
        ::mkfifo((fabric / device).c_str(), 0600);
        const auto classes = dir / "sys/class/infiniband" / device;
        std::filesystem::create_directories(classes / "ports/1");
        std::filesystem::remove(classes / "device");
        std::filesystem::create_symlink("../../../0000:3b:00.0", classes / "device");
        for (const auto* file : {"state", "phys_state", "rate"})
            std::ofstream(classes / "ports/1" / file) << state;
    }
    void tell(const std::string& device, int type, int port) {
        const unique_fd into(::open((fabric / device).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
        const int told[2] = {type, port};
        REQUIRE(::write(into.get(), told, sizeof told) == sizeof told);
    }
    void program(const std::string& text) {
        std::ofstream(dir / "listen.new") << "#!/bin/sh\n" << text << "\n";
        ::chmod((dir / "listen.new").c_str(), 0700);
        std::filesystem::rename(dir / "listen.new", dir / "listen");
    }
    hca_watch watch() {
        return {io, settings, std::make_shared<metrics>(),
                [this](kernel_fault fault, const std::string&) { found.push_back(std::move(fault)); }};
    }
    bool wait(const std::function<bool()>& so) { return time.until(io, so); }
};

hca_event port(hca_news news) { return {"mlx5_0", "0000:3b:00.0", 1, news}; }

event event_of(const kernel_fault& fault, std::uint64_t position) {
    event e;
    e.node = "n03";
    e.boot_id = "b";
    e.stream = "s";
    e.position = position;
    e.line_ms = 1'000'000 + static_cast<std::int64_t>(position) * 60'000;  // a minute between them
    e.fault = fault;
    e.text = fault.message;
    return e;
}

}  // namespace

TEST_CASE("events of devices come as they are told, and a failed device is opened again", "[fault]") {
    bench b;
    b.add("mlx5_0");
    b.add("mlx5_1", "1: DOWN");
    std::ofstream(b.fabric / "mlx5_2") << "cannot be opened";
    auto verbs = hardware::open_verbs(banyan::testing::built("mock_verbs"), b.dir);
    REQUIRE(verbs);
    auto& v = **verbs;
    const auto first = v.rescan();
    REQUIRE(first.size() == 2);
    CHECK(first[0].news == hca_news::is_up);
    CHECK(first[0].bdf == "0000:3b:00.0");
    CHECK(first[1].news == hca_news::is_down);
    CHECK(v.devices() == 2);
    CHECK(v.blind() == std::set<std::string>{"cannot open mlx5_2: Permission denied"});
    CHECK(v.rescan().empty());
    CHECK(v.wait(0ms).empty());

    b.tell("mlx5_0", IBV_EVENT_LID_CHANGE, 1);  // no fault
    b.tell("mlx5_0", IBV_EVENT_PORT_ERR, 1);
    b.tell("mlx5_0", IBV_EVENT_PORT_ACTIVE, 1);
    const auto flap = v.wait(10s);
    REQUIRE(flap.size() == 2);
    CHECK(flap[0].news == hca_news::port_down);
    CHECK(flap[0].port == 1);
    CHECK(flap[1].news == hca_news::port_up);

    b.tell("mlx5_1", IBV_EVENT_DEVICE_FATAL, 0);
    const auto fatal = v.wait(10s);
    REQUIRE(fatal.size() == 1);
    CHECK(fatal[0].news == hca_news::device_fatal);
    CHECK(fatal[0].device == "mlx5_1");
    CHECK(v.devices() == 1);
    CHECK(v.rescan().size() == 1);  // the card came back by itself
    CHECK(v.devices() == 2);

    std::filesystem::remove(b.fabric / "mlx5_0");
    CHECK(v.rescan().empty());
    CHECK(v.devices() == 1);
    std::filesystem::remove_all(b.fabric);  // the kernel's module went
    CHECK(v.rescan().empty());
    CHECK(v.blind().empty());
    CHECK_FALSE(hardware::open_verbs("libnothing-of-that-name.so.1", b.dir));
}

TEST_CASE("each loss and each return of a port is told once", "[fault]") {
    hca_links links;
    const auto code = [&](hca_news news) {
        const auto f = links.after(port(news));
        return f ? catalog::find_symptom(f->code)->name : std::string_view("-");
    };
    CHECK(code(hca_news::is_down) == "-");  // nobody put a cable there
    CHECK(code(hca_news::port_up) == "-");
    CHECK(code(hca_news::port_down) == "hca-port-down");
    CHECK(code(hca_news::port_down) == "-");
    CHECK(code(hca_news::is_down) == "-");  // listened anew
    CHECK(code(hca_news::is_up) == "hca-port-up");
    CHECK(code(hca_news::is_up) == "-");
    CHECK(code(hca_news::is_down) == "hca-port-down");  // lost while nobody listened
    const auto back = links.after(port(hca_news::port_up));
    REQUIRE(back);
    CHECK(back->message == "HCA mlx5_0 port 1: the link is up again");
    const auto dead = links.after({"mlx5_0", "0000:3b:00.0", 0, hca_news::device_fatal});
    REQUIRE(dead);
    CHECK(dead->device == "0000:3b:00");
    CHECK(precedence_of(*dead) == precedence::reset);
    // Simulated ones have no place on a bus.
    CHECK(links.after({"sim0", "", 0, hca_news::device_fatal})->device == "sim0");
}

TEST_CASE("flaps that kernel and HCA both tell are one incident with their number", "[fault]") {
    hca_links links;
    kernel_parser kernel;
    engine e;
    std::uint64_t position = 0, number = 0;
    for (int flap = 0; flap < 5; ++flap) {
        const auto line = kernel.line("mlx5_core 0000:3b:00.0 mlx5_0: Port: 1 Link DOWN");
        REQUIRE(line.fault);
        number = e.absorb(event_of(*line.fault, ++position), 1).number;
        const auto down = links.after(port(hca_news::port_down));
        REQUIRE(down);
        CHECK(e.absorb(event_of(*down, ++position), 1).number == number);
        CHECK(e.find(number)->flaps == static_cast<std::uint64_t>(flap));
        if (flap == 4) break;
        CHECK(e.absorb(event_of(*links.after(port(hca_news::port_up)), ++position), 1).number == number);
        // Nobody need close what is well again.
        CHECK(e.find(number)->closed_ms == 1);
        CHECK(e.find(number)->closed_by == fabric_is_back);
        CHECK(e.find(number)->state == incident_state::done);
    }
    CHECK(e.all().size() == 1);
    CHECK(e.find(number)->closed_ms == 0);
    const auto& i = *e.find(number);
    CHECK(i.object.kind == object_kind::hca);
    CHECK(i.flaps == 4);
    CHECK(i.reason == "hca-alert");
    // The card fails: the same incident, and it weighs more.
    const auto dead = links.after({"mlx5_0", "0000:3b:00.0", 0, hca_news::device_fatal});
    CHECK(e.absorb(event_of(*dead, ++position), 1).number == number);
    CHECK(e.find(number)->reason == "hca-health");
    const auto kept = incident_from(to_json(*e.find(number)));
    REQUIRE(kept);
    CHECK(kept->flaps == 4);
}

TEST_CASE("an incident of a port ends when all ports of the HCA are up, and nothing was done", "[fault]") {
    hca_links links;
    engine e;
    std::uint64_t position = 0;
    const auto say = [&](hca_news news, std::uint32_t number, std::int64_t now) {
        const auto fault = links.after({"mlx5_0", "0000:3b:00.0", number, news});
        return fault ? e.absorb(event_of(*fault, ++position), now).number : 0;
    };
    const auto number = say(hca_news::port_down, 1, 1);
    CHECK(say(hca_news::port_down, 2, 2) == number);
    CHECK(say(hca_news::port_up, 1, 3) == 0);
    CHECK(e.find(number)->closed_ms == 0);
    SECTION("the other one, too") {
        CHECK(say(hca_news::port_up, 2, 4) == number);
        CHECK(e.find(number)->closed_ms == 4);
        // Long after that it is another one.
        const auto next = say(hca_news::port_down, 1, 5 + flaps_within_ms);
        CHECK(next != number);
        CHECK(e.find(next)->flaps == 0);
        CHECK(e.find(number)->closed_ms == 4);
    }
    SECTION("broken again soon, it is judged anew") {
        CHECK(say(hca_news::port_up, 2, 4) == number);
        e.find(number)->held_ms = 3;
        const auto fault = links.after({"mlx5_0", "0000:3b:00.0", 1, hca_news::port_down});
        REQUIRE(fault);
        const auto again = event_of(*fault, ++position);
        const auto out = e.absorb(again, 5);
        CHECK(out.number == number);
        CHECK(out.escalated);
        CHECK(e.find(number)->line_ms == again.line_ms);
        CHECK(e.find(number)->held_ms == 0);
        CHECK_FALSE(e.absorb(event_of(*fault, ++position), 6).escalated);
    }
    SECTION("a node that was taken out stays so") {
        e.find(number)->node_out_ms = 3;
        say(hca_news::port_up, 2, 4);
        CHECK(e.find(number)->closed_ms == 0);
    }
    SECTION("somebody closed it") {
        e.find(number)->closed_ms = 3;
        e.find(number)->closed_by = "uid 7";
        const auto back = say(hca_news::port_up, 2, 4);
        CHECK(e.find(back)->closed_ms != 0);
        CHECK(say(hca_news::port_down, 1, 5) != number);
    }
}

TEST_CASE("a card of two functions is well when the ports of both are up", "[fault]") {
    hca_links links;
    const auto first = [&](hca_news news) { return links.after({"mlx5_0", "0000:3b:00.0", 1, news}); };
    const auto second = [&](hca_news news) { return links.after({"mlx5_1", "0000:3b:00.1", 1, news}); };
    const auto other = [&](hca_news news) { return links.after({"mlx5_2", "0000:5d:00.0", 1, news}); };
    // By their names where they have no place on a bus.
    const auto sim = [&](const char* name, hca_news news) { return links.after({name, "", 1, news}); };
    REQUIRE(first(hca_news::port_down));
    CHECK(second(hca_news::port_down)->device == first(hca_news::device_fatal)->device);
    REQUIRE(other(hca_news::port_down));
    CHECK_FALSE(first(hca_news::port_up));
    CHECK(other(hca_news::port_up));
    CHECK(second(hca_news::port_up));
    REQUIRE(sim("sim0", hca_news::port_down));
    REQUIRE(sim("sim1", hca_news::port_down));
    CHECK(sim("sim0", hca_news::port_up));
}

TEST_CASE("the process that listens may end, hang or print nonsense", "[fault]") {
    bench b;
    auto w = b.watch();
    const auto says = [&](const std::string& what) {
        return
            [&w, what] { return !w.blind().empty() && w.blind().begin()->find(what) != std::string::npos; };
    };
    b.program("exit 1");
    w.start();
    CHECK(b.wait(says("the process that listens ended")));
    b.program("exec sleep 1000");
    CHECK(b.wait(says("the process that listens says nothing")));
    const auto up = to_json(port(hca_news::is_up)).dump(), down = to_json(port(hca_news::port_down)).dump();
    b.program(
        "echo nonsense; echo '{\"news\":7}'; echo '[]'; echo '{\"devices\":1,\"blind\":[\"cannot open "
        "mlx5_1\"]}'; echo '" +
        up + "'; echo '" + down + "'; exec sleep 1000");
    CHECK(b.wait([&] { return b.found.size() == 1; }));
    CHECK(w.devices() == 1);
    CHECK(b.found.front().code == static_cast<std::uint32_t>(catalog::symptom::hca_port_down));
    // It is killed, since it says nothing more, and the next one finds the port well.
    b.program("echo '" + up + "'; echo '{\"devices\":1,\"blind\":[]}'; exec sleep 1000");
    CHECK(b.wait([&] { return b.found.size() == 2; }));
    CHECK(b.found.back().code == static_cast<std::uint32_t>(catalog::symptom::hca_port_up));
    CHECK(b.wait([&] { return w.blind().empty(); }));
}

TEST_CASE("nothing is said of a port by what a process saw that ended", "[fault]") {
    bench b;
    const auto ports = GENERATE(std::vector<std::string>{"mlx5_0 1"}, std::vector<std::string>{});
    const auto up = to_json(port(hca_news::is_up)).dump(), down = to_json(port(hca_news::is_down)).dump();
    const std::string looked = "'{\"devices\":1,\"blind\":[]}'";
    b.program("echo '" + up + "'; echo " + looked);
    auto w = b.watch();
    w.start();
    const auto ended = [&] {
        return !w.blind().empty() && w.blind().begin()->find("ended") != std::string::npos;
    };
    REQUIRE(b.wait(ended));
    b.program("echo '" + down + "'; echo " + looked + "; exec sleep 1000");
    // The controller is back, and knows of a loss.
    w.expect("0000:3b:00", ports);
    CHECK(b.found.empty());
    REQUIRE(b.wait([&] { return w.blind().empty(); }));
    w.after_line(to_json(port(hca_news::port_up)).dump());
    REQUIRE_FALSE(b.found.empty());
    CHECK(b.found.back().code == static_cast<std::uint32_t>(catalog::symptom::hca_port_up));
}

TEST_CASE("nobody listens where that is not wanted", "[fault]") {
    bench b;
    b.program("touch " + (b.dir / "listened").string());
    b.settings.hca_events = false;
    auto w = b.watch();
    w.start();
    b.time.pass(b.io, 100ms);
    CHECK_FALSE(std::filesystem::exists(b.dir / "listened"));
}

}  // namespace test_hca_watch
