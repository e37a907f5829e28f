// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <catch2/catch.hpp>
#include <unistd.h>

#include "common/file.hpp"
#include "common/log.hpp"

TEST_CASE("a message is one line of the log, whoever wrote its text", "[common]") {
    std::string pattern = (std::filesystem::temp_directory_path() / "banyan-log-XXXXXX").string();
    const int fd = ::mkstemp(pattern.data());
    REQUIRE(fd >= 0);
    ::close(fd);
    const auto before = spdlog::default_logger();
    REQUIRE(banyan::setup_log("tester", pattern, "info"));
    spdlog::warn("job {}: {}", 1, "/tmp/a\n2026-01-01T00:00:00.000 banyan-ckptd[1] error: forged\x1b[2J");
    spdlog::set_default_logger(before);
    const auto text = banyan::read_file(pattern, 1 << 16);
    std::filesystem::remove(pattern);
    REQUIRE(text);
    CHECK(std::count(text->begin(), text->end(), '\n') == 1);
    CHECK(text->find("tester[") != std::string::npos);
    CHECK(text->find("warning: job 1: /tmp/a\\n2026") != std::string::npos);
    CHECK(text->find('\x1b') == std::string::npos);
}

TEST_CASE("a flood under ever new keys writes little, and does not hide the others for long", "[common]") {
    banyan::log_limiter limiter(std::chrono::seconds(60));
    std::chrono::steady_clock::time_point now{std::chrono::hours(1)};
    std::uint64_t held = 0, written = 0;
    REQUIRE(limiter.pass("known", now, held));
    for (int i = 0; i < 100'000; ++i) written += limiter.pass("stranger " + std::to_string(i), now, held);
    CHECK(written <= 200);
    CHECK_FALSE(limiter.pass("known", now, held));
    now += std::chrono::seconds(61);
    CHECK(limiter.pass("known", now, held));
    CHECK(held == 1);
    CHECK(limiter.pass("new", now, held));
}
