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
