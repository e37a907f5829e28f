// SPDX-License-Identifier: BSD-3-Clause
//
// How long the commands take on a fabric of 131,072 HCAs, against reading the lines of the same file into
// memory.
#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/file.hpp"
#include "test/bench/topo_bench.hpp"
#include "test/built.hpp"

extern char** environ;

namespace banyan::topo::bench {
namespace {

constexpr std::uint32_t most_hosts = 16'384;  // of eight HCAs each
constexpr double most_readings = 15;

result<std::string> write_dump(const std::filesystem::path& folder) {
    generate::options o;
    o.hosts = most_hosts;
    o.levels = 3;
    BANYAN_TRY(const auto made, generate::generate(o));
    auto path = (folder / "largest.txt").string();
    BANYAN_CHECK(write_file_atomic(path, made.text));
    return path;
}

}  // namespace

run_result run_program(std::vector<std::string> words) {
    run_result out;
    int ends[2];
    if (::pipe(ends) != 0) return out;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    const auto start = std::chrono::steady_clock::now();
    pid_t child = 0;
    const int spawned = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    ::close(ends[1]);
    char buffer[4096];
    for (ssize_t n; spawned == 0 && (n = ::read(ends[0], buffer, sizeof buffer)) > 0;)
        out.output.append(buffer, static_cast<std::size_t>(n));
    ::close(ends[0]);
    int status = 0;
    if (spawned != 0 || ::waitpid(child, &status, 0) != child) return out;
    out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return out;
}

int read_lines(const std::vector<std::string>& paths) {
    std::vector<std::string> lines;
    for (const auto& path : paths) {
        std::ifstream file(path);
        for (std::string line; std::getline(file, line);) lines.push_back(line);
    }
    return lines.empty() ? 1 : 0;
}

bool measure_commands(banyan::bench::figures& figures, int runs, const std::string& folder) {
    const auto dump = write_dump(folder);
    if (!dump) {
        fmt::print(stderr, "topo_bench: {}\n", dump.error().text());
        return false;
    }
    const auto program = testing::built("banyan-topo");
    const auto self = std::filesystem::read_symlink("/proc/self/exe").string();
    struct command {
        std::string name;
        std::vector<std::string> words, reading;  ///< itself, and the lines of what it reads
        std::vector<double> seconds = {}, reading_s = {};
    };
    const std::vector<std::string> one_file{self, "--lines", *dump}, two_files{self, "--lines", *dump, *dump};
    std::vector<command> commands{{"show", {program, "show", *dump}, one_file},
                                  {"check", {program, "check", *dump}, one_file},
                                  {"snapshot", {program, "snapshot", *dump, "-o", *dump + ".s"}, one_file},
                                  {"diff", {program, "diff", *dump, *dump}, two_files}};
    for (int i = 0; i < runs; ++i)
        for (auto& c : commands) {
            const auto one = run_program(c.words), lines = run_program(c.reading);
            if (one.status != 0 || lines.status != 0) {
                fmt::print(stderr, "topo_bench: {} ends with {}\n", fmt::join(c.words, " "), one.status);
                return false;
            }
            c.seconds.push_back(one.wall_s);
            c.reading_s.push_back(lines.wall_s);
        }
    for (const auto& c : commands)
        figures.add(fmt::format("{} HCAs, {}", most_hosts * 8, c.name),
                    banyan::bench::median(c.seconds) / banyan::bench::median(c.reading_s), "times",
                    "reading the lines", "<=", most_readings);
    return true;
}

}  // namespace banyan::topo::bench
