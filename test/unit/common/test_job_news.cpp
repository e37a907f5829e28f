// SPDX-License-Identifier: BSD-3-Clause
//
// What is told of a job on its node: which ends of tasks count, and datagrams that somebody else may have
// made.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>

#include <catch2/catch.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/job_news.hpp"
#include "test/scratch_path.hpp"

namespace test_job_news {

using namespace banyan;

namespace {

constexpr int exited(int code) { return code << 8; }

class listener {
  public:
    std::string path = banyan::testing::scratch_path("news").string();
    listener() {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::memcpy(at.sun_path, path.data(), path.size());
        ::unlink(path.c_str());
        socket_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    }
    ~listener() { ::unlink(path.c_str()); }
    std::string next() {
        std::string out(longest_job_news, '\0');
        const auto got = ::recv(socket_.get(), out.data(), out.size(), 0);
        out.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
        return out;
    }

  private:
    unique_fd socket_;
};

}  // namespace

TEST_CASE("only an end of a task's own counts as one", "[common]") {
    for (const int status : {exited(1), exited(2), exited(127), exited(255), SIGSEGV, SIGSEGV | 0x80, SIGABRT,
                             SIGBUS, exited(128 + SIGSEGV)})
        CHECK(failed_by_itself(status));
    // Slurm's own ways to end what is left of a step, a shell's words for them, and a good end.
    for (const int status : {exited(0), SIGKILL, SIGTERM, SIGINT, SIGHUP, exited(128 + SIGKILL),
                             exited(128 + SIGTERM), exited(128 + SIGINT)})
        CHECK_FALSE(failed_by_itself(status));
    for (const int status : {SIGSEGV, SIGSEGV | 0x80, SIGBUS, SIGILL, exited(128 + SIGBUS)})
        CHECK(may_be_hardware(status));
    for (const int status : {SIGABRT, SIGFPE, exited(1), exited(11), exited(0)})
        CHECK_FALSE(may_be_hardware(status));
    CHECK(end_in_words(exited(3)) == "exit code 3");
    CHECK(end_in_words(SIGBUS) == "signal 7 (SIGBUS)");
}

TEST_CASE("news of a job reach the agent as they were, or at once not at all", "[common]") {
    job_news news;
    news.what = job_news::kind::stored_damaged;
    news.job = 17;
    news.step = 3;
    news.rank = 5;
    news.status = SIGBUS;
    news.more = 9;
    news.text = "step-7/rank-5 is damaged";
    std::string path;
    {
        listener agent;
        path = agent.path;
        REQUIRE(tell_agent(path, news));
        CHECK(job_news_from(agent.next()).value() == news);
        // What a user chose does not make the datagram longer than the agent reads, nor forge another line.
        news.text = std::string(100'000, '\n');
        REQUIRE(tell_agent(path, news));
        const auto got = job_news_from(agent.next());
        REQUIRE(got);
        CHECK(got->text.find('\n') == std::string::npos);
        // Nobody waits where the agent does not read.
        news.text.clear();
        auto sent = tell_agent(path, news);
        for (int n = 0; n < 10'000 && sent; ++n) sent = tell_agent(path, news);
        REQUIRE_FALSE(sent);
        CHECK(sent.error().code == errc::unavailable);
    }
    CHECK(tell_agent(path, news).error().code == errc::not_found);
    CHECK_FALSE(tell_agent("", news));
    CHECK_FALSE(tell_agent(std::string(200, 'x'), news));
}

TEST_CASE("what is no news of a job is refused", "[common]") {
    for (const char* text :
         {"", "7", "[]", "{}", R"({"what":"task-ended"})",
          R"({"what":"other","job":1,"step":0,"rank":0,"status":1,"more":0,"text":""})",
          R"({"what":"task-ended","job":0,"step":0,"rank":0,"status":1,"more":0,"text":""})",
          R"({"what":"task-ended","job":-1,"step":0,"rank":0,"status":1,"more":0,"text":""})",
          R"({"what":"task-ended","job":4294967296,"step":0,"rank":0,"status":1,"more":0,"text":""})"})
        CHECK_FALSE(job_news_from(text));
    CHECK(
        job_news_from(R"({"what":"task-ended","job":1,"step":0,"rank":0,"status":256,"more":0,"text":""})"));
}

}  // namespace test_job_news
