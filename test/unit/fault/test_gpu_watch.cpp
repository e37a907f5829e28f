// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's looks at the GPUs: by a library that hangs with a card, and soon after the kernel told of one.
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "fault/agent/gpu_watch.hpp"
#include "test/held_run.hpp"
#include "test/scratch_path.hpp"

namespace test_gpu_watch {

using namespace banyan;
using namespace banyan::fault;
using namespace std::chrono_literals;
using hardware::gpu_answers;
using hardware::gpu_health;

namespace {

class bench {
  public:
    banyan::testing::held_run time{1ms};  // a real process's answers are on their way
    std::filesystem::path dir = banyan::testing::scratch_path("gpus");
    asio::io_context io;
    config settings = load_config({}, "n03").value();
    std::vector<kernel_fault> found;

    bench() {
        std::filesystem::remove_all(dir);
        std::filesystem::create_directories(dir);
        settings.gpu_poll_interval = 10ms;
        settings.look_timeout = 60s;
        settings.look_program = (dir / "look").string();
        program("echo . >>" + (dir / "looks").string() + "; cat " + (dir / "told").string());
    }
    ~bench() { std::filesystem::remove_all(dir); }
    void program(const std::string& line) {
        std::ofstream(dir / "look.new") << "#!/bin/sh\n" << line << "\n";
        ::chmod((dir / "look.new").c_str(), 0700);
        std::filesystem::rename(dir / "look.new", dir / "look");
    }
    void tell(const gpu_answers& gpus) {
        std::ofstream(dir / "told.new") << to_json(gpus).dump();
        std::filesystem::rename(dir / "told.new", dir / "told");
    }
    std::uintmax_t looks() {
        std::error_code none;
        const auto bytes = std::filesystem::file_size(dir / "looks", none);
        return none ? 0 : bytes / 2;
    }
    gpu_watch watch() {
        return {io, settings, std::make_shared<metrics>(),
                [this](kernel_fault fault, const std::string&) { found.push_back(std::move(fault)); }};
    }
    bool wait(const std::function<bool()>& so) { return time.until(io, so); }
};

gpu_health at(const std::string& bus_id) {
    gpu_health out;
    out.bus_id = bus_id;
    return out;
}

}  // namespace

TEST_CASE("a library that hangs with a lost card is told, and what it then says is believed", "[fault]") {
    bench b;
    b.settings.look_timeout = 5s;
    b.tell({at("00000000:01:00.0"), at("00000000:02:00.0")});
    auto w = b.watch();
    w.start();
    REQUIRE(b.wait([&] { return w.gpus() == 2; }));
    b.program("exec sleep 1000");
    REQUIRE(b.wait([&] { return !w.blind().empty(); }));
    CHECK(w.blind().begin()->find("no answer within") != std::string::npos);
    CHECK(b.found.empty());
    auto lost = at("number 1");
    lost.lost = true;
    b.tell({at("00000000:01:00.0"), lost});
    b.program("cat " + (b.dir / "told").string());
    REQUIRE(b.wait([&] { return !b.found.empty(); }));
    CHECK(b.found[0].kind == fault_kind::bus_loss);
    CHECK(b.found[0].bdf == "0000:02:00");
    CHECK(w.blind().empty());
}

TEST_CASE("after a line of the kernel the next look comes soon, and a storm brings no storm of looks",
          "[fault]") {
    bench b;
    b.settings.gpu_poll_interval = 1h;
    b.tell({at("00000000:01:00.0")});
    auto w = b.watch();
    w.start();
    REQUIRE(b.wait([&] { return w.gpus() == 1; }));
    CHECK(b.looks() == 1);
    auto more = at("00000000:01:00.0");
    more.uncorrected = 2;
    b.tell({more});
    for (int line = 0; line < 1'000; ++line) w.hurry();
    b.time.pass(b.io, 4'900ms);
    CHECK(b.looks() == 1);
    REQUIRE(b.wait([&] { return !b.found.empty(); }));
    CHECK(b.looks() == 2);
}

TEST_CASE("a node without GPUs is no node whose GPUs went", "[fault]") {
    bench b;
    b.tell({});
    auto w = b.watch();
    w.start();
    CHECK(b.wait([&] { return b.looks() >= 3; }));
    CHECK(w.gpus() == 0);
    CHECK(w.blind().empty());
    CHECK(b.found.empty());
}

TEST_CASE("the node's NVLink domain is what its GPUs agree on, and is kept where they do not tell",
          "[fault]") {
    bench b;
    auto w = b.watch();
    const auto look = [&](const std::vector<std::optional<std::string>>& domains) {
        gpu_answers gpus;
        for (const auto& domain : domains) {
            auto gpu = at("00000000:0" + std::to_string(gpus.size() + 1) + ":00.0");
            gpu.nvlink_domain = domain;
            gpus.push_back(gpu);
        }
        w.after_look(to_json(gpus));
        return w.nvlink_domain();
    };
    const std::string one = "01234567-89ab-cdef-0123-456789abcdef.1",
                      two = "01234567-89ab-cdef-0123-456789abcdef.2";
    CHECK_FALSE(w.nvlink_domain());
    CHECK_FALSE(look({std::nullopt, std::nullopt}));
    CHECK_FALSE(look({}));
    CHECK(look({one, std::nullopt, one}) == one);
    CHECK(look({std::nullopt, std::nullopt}) == one);
    w.after_look(fail(errc::unavailable, "no answer"));
    CHECK(w.nvlink_domain() == one);
    CHECK(look({one, two, one}) == "");
    CHECK(look({one, one}) == one);
    CHECK(look({one, ""}) == "");
    CHECK(look({two, two}) == two);
    CHECK(look({"", ""}) == "");
}

}  // namespace test_gpu_watch
