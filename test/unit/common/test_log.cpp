// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include <catch2/catch.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "common/file.hpp"
#include "common/log.hpp"
#include "common/log_file.hpp"

namespace test_log {

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

TEST_CASE("a log is nobody else's to read, whatever the umask, also one that is there", "[common]") {
    namespace fs = std::filesystem;
    std::string pattern = (fs::temp_directory_path() / "banyan-log-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    const auto before = spdlog::default_logger();
    const auto mask = ::umask(0);
    for (const bool is_there : {false, true}) {
        const auto log = fs::path(pattern) / (is_there ? "old" : "new");
        if (is_there) {
            std::ofstream(log) << "x\n";
            fs::permissions(log, fs::perms(0644));
        }
        REQUIRE(banyan::setup_log("tester", log, "info"));
        spdlog::info("one");
        CHECK(fs::status(log).permissions() == fs::perms(0640));
    }
    ::umask(mask);
    spdlog::set_default_logger(before);
    fs::remove_all(pattern);
}

TEST_CASE("a flood under ever new keys writes little, and does not hide the others for long", "[common]") {
    banyan::log_limiter limiter(std::chrono::seconds(60));
    banyan::clock::time_point now{std::chrono::hours(1)};
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

TEST_CASE("a log file that was renamed is opened anew, and one that cannot be opened goes on", "[common]") {
    namespace fs = std::filesystem;
    std::string pattern = (fs::temp_directory_path() / "banyan-log-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()));
    const fs::path dir(pattern), log = dir / "logs/it.log";
    const auto lines = [](const fs::path& file) {
        const auto text = banyan::read_file(file, 1 << 16).value_or("");
        return std::count(text.begin(), text.end(), '\n');
    };
    const auto before = spdlog::default_logger();
    REQUIRE(banyan::setup_log("tester", log, "info"));  // makes the folder
    spdlog::info("one");
    fs::rename(log, dir / "old");
    spdlog::info("two");
    banyan::reopen_log();
    spdlog::info("three");
    CHECK(lines(dir / "old") == 2);
    CHECK(lines(log) == 2);  // that it is opened, and three
    fs::rename(log, dir / "logs/moved");
    fs::create_directory(log);
    banyan::reopen_log();
    spdlog::info("four");
    CHECK(lines(dir / "logs/moved") == 4);
    spdlog::set_default_logger(before);
    fs::remove_all(dir);
}

TEST_CASE("the log is known where the rest of a command line is not understood", "[common]") {
    const auto of = [](std::vector<const char*> words) {
        return banyan::log_option(static_cast<int>(words.size()), words.data());
    };
    CHECK(of({"p", "--bad", "--log", "/x"}) == "/x");
    CHECK(of({"p", "--log=/y", "--bad"}) == "/y");
    CHECK(of({"p", "--log"}).empty());
    CHECK(of({"p", "--", "--log", "/x"}).empty());
}

}  // namespace test_log
