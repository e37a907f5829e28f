// SPDX-License-Identifier: BSD-3-Clause
//
// Whole trainings of local processes: the same bits each time, a loss that goes down, and an end of all ranks
// when one is killed.
#include <array>
#include <csignal>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "examples/trainer/net/stream.hpp"
#include "examples/trainer/shape.hpp"
#include "test/built.hpp"

namespace test_training {

using banyan::unique_fd;

namespace {

using words = std::vector<std::string>;

std::uint16_t free_port() {
    const auto listener = trainer::listen_on(in_addr{}, 0, trainer::clock::now());
    return trainer::port_of(listener.get());
}

/// Local processes of one training; what they write arrives in one pipe.
class training {
  public:
    training(const std::string& shape, words arguments, std::map<std::string, std::string> more = {},
             std::uint32_t leave_out = UINT32_MAX) {
        const auto world = trainer::parse_shape(shape).ranks();
        const auto port = std::to_string(free_port());
        std::array<int, 2> ends{};
        REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
        out_.reset(ends[0]);
        const unique_fd in(ends[1]);
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            if (rank == leave_out) continue;
            std::map<std::string, std::string> env{{"RANK", std::to_string(rank)},
                                                   {"WORLD_SIZE", std::to_string(world)},
                                                   {"MASTER_ADDR", "127.0.1.1"},
                                                   {"MASTER_PORT", port},
                                                   {"BANYAN_SHAPE", shape}};
            for (const auto& [name, value] : more) env[name] = value;
            start(arguments, env, in.get());
        }
    }
    ~training() {
        for (const auto pid : pids_) ::kill(pid, SIGKILL);
        for (const auto pid : pids_) ::waitpid(pid, nullptr, 0);
    }
    training(const training&) = delete;
    training& operator=(const training&) = delete;

    /// Reads until `text` was written, or all ranks are gone.
    bool until(const std::string& text) {
        std::array<char, 4096> buffer{};
        while (written_.find(text) == written_.npos) {
            const auto n = ::read(out_.get(), buffer.data(), buffer.size());
            if (n <= 0) return false;
            written_.append(buffer.data(), static_cast<std::size_t>(n));
        }
        return true;
    }
    void kill(std::size_t rank) { ::kill(pids_.at(rank), SIGKILL); }

    /// Exit statuses of all ranks, -signal for one that was killed.
    std::vector<int> wait() {
        until("\n\n no rank writes this");  // to the end of the pipe: all writers are gone
        std::vector<int> out;
        for (const auto pid : pids_) {
            int status = 0;
            ::waitpid(pid, &status, 0);
            out.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
        }
        pids_.clear();
        return out;
    }
    const std::string& written() const { return written_; }

    /// Of every step line the part that must not vary.
    std::vector<std::string> bits() const {
        std::vector<std::string> out;
        std::istringstream in(written_);
        for (std::string line; std::getline(in, line);)
            if (line.starts_with("step=")) out.push_back(line.substr(0, line.find(" ms=")));
        return out;
    }

  private:
    void start(const words& arguments, const std::map<std::string, std::string>& env, int out) {
        auto program = banyan::testing::built("banyan-trainer");
        const pid_t pid = ::fork();
        REQUIRE(pid >= 0);
        if (pid > 0) return pids_.push_back(pid);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(out, STDOUT_FILENO);
        ::dup2(out, STDERR_FILENO);
        for (const auto* name :
             {"BANYAN_CKPT_SOCKET", "BANYAN_CKPT_OFF", "BANYAN_JOB", "SLURM_JOB_ID", "SLURM_STEP_ID"})
            ::unsetenv(name);
        for (const auto& [name, value] : env) ::setenv(name.c_str(), value.c_str(), 1);
        std::vector<char*> argv{program.data()};
        for (const auto& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
        argv.push_back(nullptr);
        ::execv(program.c_str(), argv.data());
        ::_exit(126);
    }

    unique_fd out_;
    std::vector<pid_t> pids_;
    std::string written_;
};

std::vector<std::string> bits_of(const std::string& shape, const words& arguments) {
    training run(shape, arguments);
    const auto statuses = run.wait();
    INFO(run.written());
    for (const auto status : statuses) CHECK(status == 0);
    return run.bits();
}

double loss_of(const std::string& line) { return std::stod(line.substr(line.find("loss=") + 5)); }

}  // namespace

TEST_CASE("the loss has the same bits each time, whatever the order of the ranks", "[trainer]") {
    const words arguments{"--steps", "12", "--seed", "7"};
    const auto first = bits_of("tp=2,pp=2,dp=4", arguments);
    REQUIRE(first.size() == 12);
    CHECK(bits_of("tp=2,pp=2,dp=4", arguments) == first);
    CHECK(bits_of("dp=4,pp=2,tp=2", arguments) == first);
    CHECK(bits_of("tp=2,pp=2,dp=4", {"--steps", "12", "--seed", "8"}) != first);
}

TEST_CASE("with a stop file the training ends when it is there, every rank after the same step",
          "[trainer]") {
    const auto* shape = GENERATE("dp=1", "tp=2,pp=2,dp=2", "pp=4");
    std::string folder = "/tmp/banyan-trainer-XXXXXX";
    REQUIRE(::mkdtemp(folder.data()));
    const auto file = folder + "/stop";
    training run(shape, {"--steps", "3", "--stop-file", file});
    REQUIRE(run.until("step=20 "));
    unique_fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600)).reset();
    for (const auto status : run.wait()) CHECK(status == 0);
    INFO(run.written());
    CHECK(run.written().find("finished ") != std::string::npos);
    const auto lines = run.bits();
    CHECK(lines == bits_of(shape, {"--steps", std::to_string(lines.size())}));
    // There before the first step: the least number of steps is trained.
    CHECK(bits_of(shape, {"--steps", "3", "--stop-file", file}).size() == 3);
    ::unlink(file.c_str());
    ::rmdir(folder.c_str());
}

TEST_CASE("other shapes train too, and the loss goes down", "[trainer]") {
    const auto* shape = GENERATE("dp=1", "tp=2,dp=2", "pp=4,tp=2", "dp=8");
    const auto lines = bits_of(shape, {"--steps", "60", "--hidden", "32"});
    REQUIRE(lines.size() == 60);
    CHECK(loss_of(lines.front()) == Approx(1.0));
    double late = 0;
    for (std::size_t i = 50; i < 60; ++i) late += loss_of(lines[i]) / 10;
    CHECK(late < 0.7);
}

TEST_CASE("a rank that is killed ends all others, soon and with a reason", "[trainer]") {
    const auto victim = GENERATE(0U, 5U, 15U);
    training run("tp=2,pp=2,dp=4", {"--steps", "1000000", "--step-ms", "20", "--peer-timeout", "60"});
    REQUIRE(run.until("step=3 "));
    run.kill(victim);
    const auto statuses = run.wait();
    for (std::size_t rank = 0; rank < statuses.size(); ++rank)
        CHECK(statuses[rank] == (rank == victim ? -SIGKILL : 1));
    CHECK(run.written().find("lost rank " + std::to_string(victim)) != std::string::npos);
    CHECK(run.written().find("no answer in time") == std::string::npos);
}

TEST_CASE("a rank that never comes ends the others in bounded time", "[trainer]") {
    training run("dp=4", {"--start-timeout", "1"}, {}, 2);
    for (const auto status : run.wait()) CHECK(status == 1);
    // On a busy machine others may be late, too.
    CHECK(run.written().find('2', run.written().find("did not come in time: ")) != std::string::npos);
}

TEST_CASE("wrong environments are refused with the name of the variable", "[trainer]") {
    struct row {
        const char *name, *value, *expected;
    };
    const auto r =
        GENERATE(row{"BANYAN_SHAPE", "tp=2,cp=2", "has no cp parallelism"},
                 row{"BANYAN_SHAPE", "tp=8", "WORLD_SIZE is 4"}, row{"BANYAN_TP_RANK", "7", "BANYAN_TP_RANK"},
                 row{"MASTER_PORT", "x", "MASTER_PORT"}, row{"RANK", "9", "RANK is \"9\""});
    training run("tp=2,dp=2", {"--steps", "1"}, {{r.name, r.value}});
    for (const auto status : run.wait()) CHECK(status == 1);
    INFO(run.written());
    CHECK(run.written().find(r.expected) != std::string::npos);
}

TEST_CASE("a daemon that is not there may have the state: nothing is begun anew, unless it never was there",
          "[trainer]") {
    std::map<std::string, std::string> promised{{"BANYAN_CKPT_SOCKET", "/nonexistent/ckptd.sock"},
                                                {"BANYAN_JOB", "1"}};
    training run("dp=2", {"--steps", "2"}, promised);
    for (const auto status : run.wait()) CHECK(status == 1);
    CHECK(run.written().find("cannot restore: cannot connect to /nonexistent/ckptd.sock") !=
          std::string::npos);
    promised["BANYAN_CKPT_OFF"] = "the daemon cannot start";
    training without("dp=2", {"--steps", "2"}, promised);
    for (const auto status : without.wait()) CHECK(status == 0);
}

}  // namespace test_training
