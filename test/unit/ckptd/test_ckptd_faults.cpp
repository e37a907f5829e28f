// SPDX-License-Identifier: BSD-3-Clause
//
// What goes wrong: ranks killed in the middle of a copy, dead buddies and leaders, storage that fails,
// damaged memory.
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cluster.hpp"
#include "common/fd.hpp"
#include "common/file.hpp"
#include "common/job_news.hpp"
#include "test/built.hpp"

namespace test_ckptd_faults {

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace fs = std::filesystem;

namespace {

banyan::unique_fd open_memfd(pid_t daemon, const std::string& memfd) {
    // Through the kernel's public view of it.
    for (const auto& e : fs::directory_iterator("/proc/" + std::to_string(daemon) + "/fd")) {
        std::error_code ec;
        if (fs::read_symlink(e.path(), ec).string().find(memfd + " ") != std::string::npos)
            return banyan::unique_fd(::open(e.path().c_str(), O_RDWR | O_CLOEXEC));
    }
    return {};
}

bool flip_bit_in(const banyan::unique_fd& fd, off_t offset) {
    char byte = 0;
    if (::pread(fd.get(), &byte, 1, offset) != 1) return false;
    byte = static_cast<char>(byte ^ 0x10);
    return ::pwrite(fd.get(), &byte, 1, offset) == 1;
}

/// Stands for the fault agent of a node.
class agent {
  public:
    explicit agent(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        std::memcpy(at.sun_path, path.data(), std::min(path.size(), sizeof at.sun_path - 1));
        REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    }
    /// What has come and was not asked for yet.
    std::vector<banyan::job_news> heard() {
        std::vector<banyan::job_news> out;
        std::string data(banyan::longest_job_news, '\0');
        for (;;) {
            const auto got = ::recv(socket_.get(), data.data(), data.size(), MSG_DONTWAIT);
            if (got < 0) return out;
            out.push_back(banyan::job_news_from({data.data(), static_cast<std::size_t>(got)}).value());
        }
    }

  private:
    banyan::unique_fd socket_;
};

}  // namespace

TEST_CASE("a rank killed in the middle of a copy leaves the complete step", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(1, 2, 1, "", 0));
    for (std::uint32_t round = 0; round < 4; ++round) {
        const std::uint64_t step = 10 * (round + 1);
        if (round > 0) c.new_step(1, round, {1, 2});
        auto ranks = start_ranks(c, 1, {1, 2});
        if (round > 0)
            all_are(ask_all(ranks, "restart"), restored_state{.step = step - 10, .source = BCK_FROM_LOCAL});
        all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
        all_are(ask_all(ranks, "wait " + std::to_string(step) + " 2 5000"), BCK_OK);
        // Rank 0 saves on alone, so nothing newer can become complete; killed at a different moment each
        // time.
        const auto seals = c.counter(1, 1, "seals").get<std::uint64_t>();
        ranks[0].say("loop " + std::to_string(step + 1));
        CHECK(eventually([&] { return c.counter(1, 1, "seals").get<std::uint64_t>() > seals; }));
        ::usleep(1700 * (round + 1));  // of the kernel's time, as the rank's copies
        for (auto& r : ranks) r.kill();
    }
}

TEST_CASE("the leader's death: the next slot's node leads", "[ckptd]") {
    cluster c({3, "", {}});
    c.open(c.request(21, 3, 1, "", 0));
    {
        auto ranks = start_ranks(c, 21, {1, 2, 3});
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
        // Rank 0 has sealed, so has its buddy's copy; then the leader is gone before it can count the others.
        CHECK(ranks[0].ask("save 2") == BCK_OK);
        CHECK(ranks[0].ask("wait 2 0 1000") == BCK_OK);
        c.kill(1, SIGKILL);
    }
    // n1 comes back without memory, in the place it had: its shard is on its buddy n2.
    REQUIRE(c.start(1));
    c.open(c.request(21, 3, 1, "", 0));
    c.new_step(21, 1, {1, 2, 3});
    auto ranks = start_ranks(c, 21, {1, 2, 3});
    const auto restored = ask_all(ranks, "restart");
    CHECK(restored[0] == restored_state{.step = 1, .source = BCK_FROM_PEER});
    CHECK(restored[1] == restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    CHECK(restored[2] == restored_state{.step = 1, .source = BCK_FROM_LOCAL});
}

TEST_CASE("a full directory: the step is not committed, a later flush succeeds", "[ckptd]") {
    if (::geteuid() != 0) return;
    cluster c({1, "", {}});
    const auto mount = c.dir() + "/small";
    fs::create_directory(mount);
    if (::mount("tmpfs", mount.c_str(), "tmpfs", 0, "size=12m") != 0) return;
    const struct unmounting {
        std::string path;
        ~unmounting() { ::umount2(path.c_str(), MNT_DETACH); }
    } unmount{mount};
    { std::ofstream(mount + "/ballast") << std::string(9 << 20, 'x'); }
    CHECK(c.open(c.request(4, 1, 1, mount, 1)).empty());
    auto ranks = start_ranks(c, 4, {1});
    CHECK(ranks[0].ask("save 1") == BCK_OK);
    CHECK(ranks[0].ask("wait 1 1 5000") == BCK_OK);
    CHECK(eventually([&] { return c.counter(1, 4, "flush_failures").get<int>() > 0; }));
    CHECK_FALSE(fs::exists(mount + "/step-000000000001/COMMIT"));
    CHECK(c.session(1, 4)["warning"].get<std::string>().find("No space") != std::string::npos);
    fs::remove(mount + "/ballast");
    CHECK(ranks[0].ask("save 2") == BCK_OK);
    CHECK(ranks[0].ask("wait 2 3 5000") == BCK_OK);
    CHECK(fs::exists(mount + "/step-000000000002/COMMIT"));
    CHECK(c.printed("No space") == 1);
}

TEST_CASE("a bit flipped in a replica is detected and the copy is not used", "[ckptd]") {
    cluster c({3, "", {}});
    agent holder(c.agent(1)), asker(c.agent(3));
    const auto storage = c.dir() + "/store";
    c.open(c.request(5, 2, 1, storage, 1));
    {
        auto ranks = start_ranks(c, 5, {1, 2});
        all_are(ask_all(ranks, "save 1"), BCK_OK);
        all_are(ask_all(ranks, "wait 1 3 5000"), BCK_OK);
        REQUIRE(eventually([&] { return c.session(1, 5)["replicas"].size() == 1; }));
    }
    // Rank 1's only other copy is on node 1.
    REQUIRE(flip_bit_in(open_memfd(c.pid(1), "banyan-replica-5-1"), 4'600'000));
    c.kill(2, SIGKILL);
    c.new_step(5, 1, {1, 3});
    auto ranks = start_ranks(c, 5, {1, 3});
    const auto restored = ask_all(ranks, "restart");
    CHECK(restored[0] == restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    CHECK(restored[1] == restored_state{.step = 1, .source = BCK_FROM_STORAGE});  // from storage
    CHECK(c.counter(1, 5, "damaged") == 1);  // found by whoever holds it, before it is sent
    CHECK(c.counter(3, 5, "damaged") == 1);  // and by whoever has asked for it
    CHECK(c.counter(1, 5, "damaged_memory") == 1);
    CHECK(c.counter(3, 5, "damaged_arrival") == 1);
    // The memory is the holder's, and so is the word on it.
    const auto told = holder.heard();
    REQUIRE(told.size() == 1);
    CHECK(told[0].what == banyan::job_news::kind::copy_damaged);
    CHECK(told[0].job == 5);
    CHECK(told[0].rank == 1);
    CHECK(asker.heard().empty());
}

TEST_CASE("a file that is not what was written is told of as that", "[ckptd]") {
    cluster c({2, "", {}});
    agent first(c.agent(1)), second(c.agent(2));
    const auto storage = c.dir() + "/store";
    c.open(c.request(8, 2, 1, storage, 1));
    {
        auto ranks = start_ranks(c, 8, {1, 2});
        for (const char* step : {"1", "2"}) {
            all_are(ask_all(ranks, std::string("save ") + step), BCK_OK);
            all_are(ask_all(ranks, std::string("wait ") + step + " 3 8000"), BCK_OK);
        }
    }
    for (const int node : {1, 2}) REQUIRE(ckpt::session_close(c.socket(node), 8, false, 5s));
    // One byte of a rank's shard.
    bool changed = false;
    for (const auto& file : fs::directory_iterator(storage + "/step-000000000002")) {
        if (changed || file.file_size() < (1 << 20)) continue;
        std::fstream shard(file.path(), std::ios::in | std::ios::out | std::ios::binary);
        shard.seekg(1 << 19);
        const auto byte = static_cast<char>(shard.get() ^ 0x10);
        shard.seekp(1 << 19);
        changed = static_cast<bool>(shard.put(byte));
    }
    REQUIRE(changed);
    c.open(c.request(8, 2, 1, storage, 1));
    auto ranks = start_ranks(c, 8, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_STORAGE});
    std::vector<banyan::job_news> told;
    for (auto* node : {&first, &second})
        for (auto& news : node->heard()) told.push_back(std::move(news));
    REQUIRE(told.size() == 1);
    CHECK(told[0].what == banyan::job_news::kind::stored_damaged);
    CHECK(told[0].job == 8);
    CHECK(told[0].text.find("step-000000000002") != std::string::npos);
    const auto damaged = [&](int node) { return c.counter(node, 8, "damaged_storage").get<int>(); };
    CHECK(damaged(1) + damaged(2) == 1);
}

TEST_CASE("that a job was given up is told to the agent for its owner alone", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(9, 1, 1, "", 0));
    // Without an agent the owner hears that nobody has taken it.
    CHECK_FALSE(ckpt::give_up(c.socket(1), 9, 3, "why", 5s));
    agent node(c.agent(1));
    CHECK(ckpt::give_up(c.socket(1), 10, 3, "why", 5s).error().code == banyan::errc::not_found);
    auto foreign = c.request(11, 1, 1, "", 0);
    foreign.bytes = 1 << 20;
    c.open(foreign);
    // Another user's word on it is none.
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(77);
        const auto told = ckpt::give_up(c.socket(1), 11, 3, "another's", 5s);
        ::_exit(!told && told.error().code == banyan::errc::not_found ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    if (WEXITSTATUS(status) != 77) CHECK(status == 0);
    CHECK(node.heard().empty());
    REQUIRE(ckpt::give_up(c.socket(1), 11, 3, "3 restarts\nforged", 5s));
    const auto heard = node.heard();
    REQUIRE(heard.size() == 1);
    CHECK(heard[0].what == banyan::job_news::kind::given_up);
    CHECK(heard[0].job == 11);
    CHECK(heard[0].text == "3 restarts\\nforged");
    // However long it is, its begin is told, in whole characters.
    foreign.job = 12;
    c.open(foreign);
    std::string text(banyan::job_news::max_text - 1, 'x');
    for (int n = 0; n < 5000; ++n) text += "ü";
    REQUIRE(ckpt::give_up(c.socket(1), 12, 3, text, 5s));
    const auto begin = node.heard();
    REQUIRE(begin.size() == 1);
    CHECK(begin[0].text == text.substr(0, banyan::job_news::max_text - 1));
}

TEST_CASE("damage in both levels: an older step is taken by all", "[ckptd]") {
    cluster c({2, "", {}});
    const auto storage = c.dir() + "/store";
    c.open(c.request(6, 2, 1, storage, 1));
    {
        auto ranks = start_ranks(c, 6, {1, 2});
        for (const char* step : {"1", "2"}) {
            all_are(ask_all(ranks, std::string("save ") + step), BCK_OK);
            all_are(ask_all(ranks, std::string("wait ") + step + " 3 8000"), BCK_OK);
        }
    }
    for (const int node : {1, 2}) REQUIRE(ckpt::session_close(c.socket(node), 6, false, 5s));
    // A manifest that does not fit its COMMIT: step 2 does not exist.
    std::ofstream(storage + "/step-000000000002/MANIFEST.json", std::ios::app) << " ";
    CHECK(std::system(
              (banyan::testing::built("banyan-ckpt") + " verify " + storage + " >/dev/null 2>&1").c_str()) !=
          0);
    c.open(c.request(6, 2, 1, storage, 1));
    auto ranks = start_ranks(c, 6, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 1, .source = BCK_FROM_STORAGE});
}

TEST_CASE("a helper step changes nothing; a step begins when the processes of the older one are gone",
          "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(7, 2, 1, "", 0));
    c.new_step(7, 0, {1, 2});
    auto old_ranks = start_ranks(c, 7, {1, 2});
    all_are(ask_all(old_ranks, "save 1"), BCK_OK);
    all_are(ask_all(old_ranks, "wait 1 2 5000"), BCK_OK);
    // As wide as the training, and none of its processes asks for a rank.
    c.new_step(7, 1, {2, 1});
    all_are(ask_all(old_ranks, "save 2"), BCK_OK);
    all_are(ask_all(old_ranks, "wait 2 2 5000"), BCK_OK);
    CHECK(c.counter(1, 7, "refused") == 0);

    c.new_step(7, 2, {1, 2});
    old_ranks[1].kill();
    rank_process second(c, 2, 7, 1, 2, state_bytes);
    second.say("restart");
    // Rank 0's process lives on. What it saves is not complete without the other, which waits for it to end.
    CHECK(old_ranks[0].ask("save 3") == BCK_OK);
    CHECK(old_ranks[0].ask("wait 3 1 500") == BCK_E_TIMEOUT);
    old_ranks[0].kill();
    rank_process first(c, 1, 7, 0, 2, state_bytes);
    CHECK(first.ask("restart") == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
    CHECK(second.hear() == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
    CHECK_FALSE(ckpt::step_open(c.socket(1), {7, 1, {"n2", "n1"}}, 5s));
    CHECK(ckpt::step_open(c.socket(1), {7, 2, {"n1", "n2"}}, 5s));
    CHECK_FALSE(ckpt::step_open(c.socket(1), {7, 2, {"n2", "n1"}}, 5s));
}

TEST_CASE("a step of another run of the job is not taken for one of the session's run", "[ckptd]") {
    cluster c({1, "", {}});
    auto request = c.request(11, 1, 1, "", 0);
    c.open(request);
    ckpt::step_request step{11, 0, {"n1"}, 0};
    REQUIRE(ckpt::step_open(c.socket(1), step, 5s));
    // Requeued, and no prolog here.
    step.restart = 1;
    const auto refused = ckpt::step_open(c.socket(1), step, 5s);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == banyan::errc::not_found);
    CHECK(refused.error().what ==
          "job 11: the step is of restart 1, and the session on this node of restart 0");
    request.restart = 1;
    c.open(request);
    const auto opened = ckpt::step_open(c.socket(1), step, 5s);
    REQUIRE(opened);
    // And one of the run before, late.
    step.restart = 0;
    CHECK(ckpt::step_open(c.socket(1), step, 5s).error().code == banyan::errc::conflict);
    step.restart.reset();
    CHECK(ckpt::step_open(c.socket(1), step, 5s)->generation == opened->generation);
}

TEST_CASE("one process started anew within the step: all begin again, from one step", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(10, 2, 1, "", 0));
    auto ranks = start_ranks(c, 10, {1, 2});
    for (const char* step : {"1", "2"}) {
        all_are(ask_all(ranks, std::string("save ") + step), BCK_OK);
        all_are(ask_all(ranks, std::string("wait ") + step + " 2 5000"), BCK_OK);
    }
    ranks[1].kill();
    rank_process again(c, 2, 10, 1, 2, state_bytes);
    CHECK(again.ask("restart") == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
    // The other has not gone back: what it would save is of another history.
    CHECK(ranks[0].ask("save 3") == BCK_E_STALE);
    CHECK(ranks[0].ask("wait 2 1 5000") == BCK_E_STALE);
    CHECK(again.ask("save 3") == BCK_OK);
    CHECK(again.ask("wait 3 1 300") == BCK_E_TIMEOUT);
    CHECK(ranks[0].ask("restart") == restored_state{.step = 2, .source = BCK_FROM_LOCAL});
    CHECK(ranks[0].ask("save 3") == BCK_OK);
    CHECK(ranks[0].ask("wait 3 2 5000") == BCK_OK);
    CHECK(again.ask("wait 3 2 5000") == BCK_OK);
}

TEST_CASE("a process started anew within the step has what came to storage in it", "[ckptd]") {
    cluster c({1, "", {}});
    c.open(c.request(14, 1, 1, c.dir() + "/store", 10));
    auto ranks = start_ranks(c, 14, {1});
    CHECK(ranks[0].ask("save 10") == BCK_OK);
    CHECK(ranks[0].ask("wait 10 3 10000") == BCK_OK);
    CHECK(ranks[0].ask("save 15") == BCK_OK);
    CHECK(ranks[0].ask("wait 15 1 5000") == BCK_OK);
    ranks[0].kill();
    const auto memory = open_memfd(c.pid(1), "banyan-buffers-14-0");
    const auto end = ::lseek(memory.get(), 0, SEEK_END);
    REQUIRE(end > 0);
    for (off_t at = state_bytes / 2; at < end; at += state_bytes / 4) REQUIRE(flip_bit_in(memory, at));
    ranks = start_ranks(c, 14, {1});
    CHECK(ranks[0].ask("restart") == restored_state{.step = 10, .source = BCK_FROM_STORAGE});
}

TEST_CASE("steps count on from the one that a process began from", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(15, 2, 1, "", 0));
    auto ranks = start_ranks(c, 15, {1, 2});
    all_are(ask_all(ranks, "save 100"), BCK_OK);
    all_are(ask_all(ranks, "wait 100 2 5000"), BCK_OK);
    for (auto& r : ranks) r.kill();
    c.new_step(15, 1, {1, 2});
    ranks = start_ranks(c, 15, {1, 2});
    all_are(ask_all(ranks, "restart"), restored_state{.step = 100, .source = BCK_FROM_LOCAL});
    // It would count as safe at once, by the number of what is there.
    all_are(ask_all(ranks, "save 10"), BCK_E_INVALID);
    CHECK(ranks[0].ask("error").find("from which this process began") != std::string::npos);
    all_are(ask_all(ranks, "save 100"), BCK_OK);
    all_are(ask_all(ranks, "save 101"), BCK_OK);
    all_are(ask_all(ranks, "wait 101 2 5000"), BCK_OK);
}

TEST_CASE("a process that has not gone back does not count by attaching again", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(11, 2, 1, "", 0));
    auto ranks = start_ranks(c, 11, {1, 2});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
    ranks[1].kill();
    rank_process again(c, 2, 11, 1, 2, state_bytes);
    CHECK(again.ask("restart") == restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    CHECK(ranks[0].ask("grow 20000000") == BCK_OK);
    CHECK(ranks[0].ask("save 8") == BCK_E_STALE);
    CHECK(ranks[0].ask("error").find("bck_restart") != std::string::npos);
    CHECK(again.ask("save 8") == BCK_OK);
    CHECK(again.ask("wait 8 1 500") == BCK_E_TIMEOUT);
}

TEST_CASE("all go back to what they saved before", "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(12, 2, 2, "", 0));
    auto ranks = start_ranks(c, 12, {1, 2}, 2);
    for (int step = 1; step <= 3; ++step) all_are(ask_all(ranks, "save " + std::to_string(step)), BCK_OK);
    all_are(ask_all(ranks, "wait 3 2 5000"), BCK_OK);
    CHECK(ranks[0].ask("save 4") == BCK_OK);  // the others never do
    all_are(ask_all(ranks, "save 3"), BCK_E_INVALID);
    all_are(ask_all(ranks, "restart"), restored_state{.step = 3, .source = BCK_FROM_LOCAL});
    all_are(ask_all(ranks, "save 4"), BCK_OK);
    all_are(ask_all(ranks, "wait 4 2 5000"), BCK_OK);
}

TEST_CASE("back-pressure: a save that finds no buffer is skipped, not torn, and saves go on after it",
          "[ckptd]") {
    cluster c({2, "", {}});
    c.open(c.request(8, 2, 1, "", 0));
    auto ranks = start_ranks(c, 8, {1, 2});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    all_are(ask_all(ranks, "wait 1 2 5000"), BCK_OK);
    c.kill(2, SIGSTOP);  // rank 1's own daemon releases nothing
    CHECK(ranks[1].ask("save 2") == BCK_OK);
    CHECK(ranks[1].ask("save 3") == BCK_OK);
    CHECK(ranks[1].ask("save 4") == BCK_E_BUSY);
    c.kill(2, SIGCONT);
    all_are(ask_all(ranks, "save 5"), BCK_OK);
    all_are(ask_all(ranks, "wait 5 2 15000"), BCK_OK);
    for (auto& r : ranks) r.kill();
    c.new_step(8, 1, {1, 2});
    auto again = start_ranks(c, 8, {1, 2});
    all_are(ask_all(again, "restart"), restored_state{.step = 5, .source = BCK_FROM_LOCAL});
}

}  // namespace test_ckptd_faults
