// SPDX-License-Identifier: BSD-3-Clause
//
// What somebody on the network can do to the daemons' TCP port, without the cluster's key or with the rights
// of a user only. Real daemons on loopback; each attack ends with a save that reaches two nodes.
#include <array>
#include <fstream>
#include <optional>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/crc32c.hpp"
#include "common/munge.hpp"
#include "impostor.hpp"
#include "test/built.hpp"
#include "unit/ckptd/cluster.hpp"
#include "unit/ckptd/gate.hpp"

using namespace ckptd_test;
namespace ckpt = banyan::ckpt;
namespace wire = banyan::wire;
namespace munge = banyan::munge;

namespace {

constexpr int memory_tier = 1, replica_tier = 2;
constexpr const char* mark_of_state = "layer.weight";  // stands in the header of every shard

std::string munge_socket(const cluster& c) { return c.dir() + "/munge/socket"; }

/// A job on n1 and n2 whose state is on both after every save.
class training {
  public:
    explicit training(const cluster& c) : ranks_(start(c)) {}
    void saves(std::uint64_t step) {
        all_are(ask_all(ranks_, "save " + std::to_string(step)), BCK_OK);
        all_are(
            ask_all(ranks_, "wait " + std::to_string(step) + " " + std::to_string(replica_tier) + " 20000"),
            BCK_OK);
    }
    std::vector<rank_process>& ranks() { return ranks_; }

  private:
    static std::vector<rank_process> start(const cluster& c) {
        c.open(c.request(1, 2, 1, "", 0));
        return start_ranks(c, 1, {1, 2});
    }
    std::vector<rank_process> ranks_;
};

/// The credential that a user without rights can make for `payload`.
std::string credential_of_nobody(const std::string& socket, const std::string& payload) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
        if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(77);
        const auto text = munge::encode(socket, payload);
        if (!text || ::write(ends[1], text->data(), text->size()) < 0) ::_exit(1);
        ::_exit(0);
    }
    ::close(ends[1]);
    std::array<char, 4096> buffer{};
    const auto n = ::read(ends[0], buffer.data(), buffer.size());
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    REQUIRE(status == 0);
    REQUIRE(n > 0);
    return {buffer.data(), static_cast<std::size_t>(n)};
}

void raise_files() {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
}

/// A program of the test's, ended with this object.
class child {
  public:
    explicit child(std::vector<std::string> words) : pid_(::fork()) {
        if (pid_ != 0) return;
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        std::vector<char*> arguments;
        for (auto& w : words) arguments.push_back(w.data());
        arguments.push_back(nullptr);
        ::execv(arguments[0], arguments.data());
        ::_exit(127);
    }
    ~child() {
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    child(const child&) = delete;
    bool runs() const { return ::waitpid(pid_, nullptr, WNOHANG) == 0; }
    pid_t pid() const { return pid_; }

  private:
    pid_t pid_;
};

std::string address(int i) {
    return "127.0." + std::to_string(10 + i / 250) + "." + std::to_string(1 + i % 250);
}

/// A fault controller beside the cluster's daemons, started with the descriptors of an ordinary process.
class fault_controller {
  public:
    explicit fault_controller(const cluster& c)
        : port_(static_cast<std::uint16_t>(c.port() == 65535 ? 1025 : c.port() + 1)) {
        const auto place = c.dir() + "/fault";
        std::ofstream(place + ".conf")
            << "[munge]\nsocket = \"" << munge_socket(c) << "\"\n[fault]\nport = " << port_ << "\nbind = \""
            << address_ << "\"\nsocket = \"" << place << ".sock\"\nhistory = \"" << place << ".db\"\n";
        process_.emplace(
            std::vector<std::string>{"/bin/sh", "-c",
                                     "ulimit -Sn 1024; exec \"$0\" controller --config \"$1.conf\" "
                                     "--log \"$1.log\"",
                                     banyan::testing::built("banyan-faultd"), place});
        REQUIRE(eventually([&] { return hostile::answers(address_, port_); }));
    }
    hostile::caller caller_as(const std::string& node, const std::string& from = "127.0.0.1") const {
        return {address_, port_, node, "", "faultd", from};
    }
    bool runs() const { return process_->runs(); }
    pid_t pid() const { return process_->pid(); }

  private:
    static constexpr auto address_ = "127.0.5.2";
    std::uint16_t port_;
    std::optional<child> process_;
};

}  // namespace

TEST_CASE("a proof that is none ends the connection, and nothing else", "[hostile]") {
    cluster c({2, "", {}});
    training job(c);
    const auto socket = munge_socket(c);
    const auto greeted = [&](const std::string& wanted = "n1") {
        hostile::caller one(c.addr(1), c.port(), "n2", wanted);
        REQUIRE(one.greet());
        return one;
    };
    std::string used;
    {
        auto honest = greeted();
        used = munge::encode(socket, honest.statement().text(true)).value();
        REQUIRE(honest.prove(used) == hostile::welcome);
    }
    for (int round = 0; round < 10; ++round) {
        for (const auto& text : {std::string("x"), std::string(), std::string(4000, 'A'),
                                 std::string("MUNGE:AwQFAAA=:"), used.substr(0, used.size() / 2)})
            CHECK(greeted().prove(text) == hostile::refused);
        CHECK(greeted().prove(used) == hostile::refused);  // replayed
        auto other = greeted();
        CHECK(other.prove(munge::encode(socket, "somebody else's payload").value()) == hostile::refused);
        auto user = greeted();
        CHECK(user.prove(credential_of_nobody(socket, user.statement().text(true))) == hostile::refused);
        auto listener = greeted();  // what the other end would state
        CHECK(listener.prove(munge::encode(socket, listener.statement().text(false)).value()) ==
              hostile::refused);
        CHECK(greeted().prove(std::string(5000, 'A')) != hostile::welcome);  // longer than one can be
    }
    hostile::caller misdirected(c.addr(1), c.port(), "n2", "n7");
    CHECK_FALSE(misdirected.greet());
    hostile::caller foreign(c.addr(1), c.port(), "n2", "n1", "faultd");
    CHECK_FALSE(foreign.greet());
    hostile::caller forger(c.addr(1), c.port(), "n2\n[error] all is lost\x1b[2J", "n1");
    CHECK_FALSE(forger.greet());
    job.saves(1);
}

TEST_CASE("nor does it end the fault controller", "[hostile]") {
    cluster c({1, "", {}});
    const fault_controller controller(c);
    for (int round = 0; round < 20; ++round) {
        auto one = controller.caller_as("n1");
        REQUIRE(one.greet());
        CHECK(one.prove("x") == hostile::refused);
    }
    CHECK(controller.runs());
}

// BANYAN_AGENTS=12800 asks for as many as the largest clusters have nodes.
TEST_CASE("the fault controller holds more agents than the usual limit of descriptors", "[hostile]") {
    raise_files();
    cluster c({1, "", {}});
    const fault_controller controller(c);
    const char* wanted = std::getenv("BANYAN_AGENTS");
    const int count = wanted ? std::atoi(wanted) : 1500;
    std::vector<hostile::caller> agents;
    for (int i = 0; i < count; ++i) {
        const auto node = "n" + std::to_string(i);
        agents.push_back(controller.caller_as(node, address(i)));
        REQUIRE(agents.back().greet());
        REQUIRE(agents.back().prove(
                    munge::encode(munge_socket(c), agents.back().statement().text(true)).value()) ==
                hostile::welcome);
        const auto welcomed = agents.back().ask(1, {{"node", node}, {"boot", "b"}, {"gpus", 8}});
        REQUIRE(welcomed);
        REQUIRE_FALSE(welcomed->contains("error"));
    }
    for (const auto& agent : agents) REQUIRE_FALSE(hostile::has_hung_up(agent.fd()));
    const auto memory = hostile::resident(controller.pid());
    INFO(count << " agents, " << (memory >> 20) << " MiB");
    CHECK(memory < (1u << 30));  // MemoryMax of its unit
    CHECK(controller.runs());
}

TEST_CASE("a port that any user may take is not answered", "[hostile]") {
    if (::geteuid() != 0) return;
    cluster c({2, "", {}});
    training job(c);
    const auto fd = hostile::dial(c.addr(1), c.port(), false);
    CHECK(hostile::is_closed(fd.get()));
    job.saves(1);
}

TEST_CASE("a relay between two daemons hears nothing of a shard", "[hostile]") {
    for (const bool same_node : {false, true}) {
        cluster c({3, "commit_warning_after = \"1s\"\n", {}});
        c.kill(2, SIGKILL);
        // Either the relay passes n1's calls for n2 on to n3, or n2 itself runs at another address.
        auto target = c.addr(3);
        std::optional<child> moved;
        if (same_node) {
            target = "127.0.5.1";
            moved.emplace(std::vector<std::string>{banyan::testing::built("banyan-ckptd"), "--config",
                                                   c.dir() + "/banyan.conf", "--node", "n2", "--bind", target,
                                                   "--log", c.dir() + "/moved.log"});
            REQUIRE(eventually([&] { return ckpt::status(c.socket(2), 1s).has_value(); }));
        }
        {
            const hostile::relay mallory(c.addr(2), target, c.port());
            auto request = c.request(1, 2, 1, "", 0);
            c.open(request);
            rank_process rank(c, 1, 1, 0, 2, state_bytes);
            CHECK(rank.ask("save 1") == BCK_OK);
            CHECK(eventually([&] {
                return c.session(1, 1)["warning"].get<std::string>().find("n2") != std::string::npos;
            }));
            CHECK(mallory.connections() > 0);
            const auto heard = mallory.heard();
            CHECK(heard.find("ckptd") != std::string::npos);
            CHECK(heard.find(mark_of_state) == std::string::npos);
            CHECK(heard.find("chunks") == std::string::npos);
            CHECK(heard.size() < 100'000);
        }
    }
}

TEST_CASE("a daemon that is none of the job's gets nothing of it", "[hostile]") {
    cluster c({2, "", {}});
    training job(c);
    job.saves(1);
    const auto ask = [&](const std::string& node) {
        hostile::caller one(c.addr(1), c.port(), node, "n1");
        REQUIRE(one.greet());
        REQUIRE(one.prove(munge::encode(munge_socket(c), one.statement().text(true)).value()) ==
                hostile::welcome);
        const auto generation = c.session(1, 1)["generation"];
        const json get = {
            {"job", 1}, {"generation", generation}, {"rank", 0}, {"key_generation", generation}, {"step", 1}};
        auto answer = one.ask(0x103, get);
        REQUIRE(answer);
        return *answer;
    };
    CHECK(ask("n9").contains("error"));
    CHECK(ask("n2").contains("chunks"));
}

TEST_CASE("a daemon that stops in the middle of a copy holds its rank up for a moment only", "[hostile]") {
    cluster c({2, "", {}});
    training job(c);
    job.saves(1);
    // What a node that hangs leaves behind: its kernel keeps the connection alive.
    hostile::caller hung(c.addr(2), c.port(), "n1", "n2");
    REQUIRE(hung.greet());
    REQUIRE(hung.prove(munge::encode(munge_socket(c), hung.statement().text(true)).value()) ==
            hostile::welcome);
    const auto generation = c.session(2, 1)["generation"];
    const json begin = {{"job", 1},     {"generation", generation},
                        {"rank", 0},    {"key_generation", generation},
                        {"step", 77},   {"bytes", 4096},
                        {"chunks", {0}}};
    const auto begun = hung.ask(0x100, begin);
    REQUIRE(begun);
    INFO(begun->dump());
    REQUIRE((begun->empty() && !begun->contains("busy")));
    job.saves(2);  // waits up to 20 s
}

TEST_CASE("a late word of a flush does not end a newer one", "[hostile]") {
    const gate storage;
    cluster c(storage.on({1}, 2));
    c.open(c.request(1, 2, 1, c.dir() + "/store", 10));
    auto ranks = start_ranks(c, 1, {1, 2});
    all_are(ask_all(ranks, "save 10"), BCK_OK);
    all_are(ask_all(ranks, "wait 10 2 20000"), BCK_OK);
    // The second node has written its part; the first one's stands still.
    REQUIRE(eventually([&] { return c.counter(2, 1, "storage_bytes_written") > state_bytes; }));
    hostile::caller late(c.addr(1), c.port(), "n2", "n1");
    REQUIRE(late.greet());
    REQUIRE(late.prove(munge::encode(munge_socket(c), late.statement().text(true)).value()) ==
            hostile::welcome);
    const auto generation = c.session(1, 1)["generation"];
    const auto answer = late.ask(0x107, {{"job", 1},
                                         {"generation", generation},
                                         {"key_generation", generation},
                                         {"step", 5},
                                         {"flush", ".flush.1"}});
    REQUIRE(answer);
    CHECK(answer->empty());
    storage.open();
    CHECK(eventually([&] { return is_stored(c, 10); }));
    const auto once = c.counter(2, 1, "storage_bytes_written");
    CHECK(c.counter(1, 1, "storage_bytes_written") == once);
}

TEST_CASE("what comes along with a question ends no more than the question", "[hostile]") {
    cluster c({2, "", {}});
    training job(c);
    job.saves(1);
    const auto generation = c.session(2, 1)["generation"];
    const auto n1_at_n2 = [&] {
        hostile::caller out(c.addr(2), c.port(), "n1", "n2");
        REQUIRE(out.greet());
        REQUIRE(out.prove(munge::encode(munge_socket(c), out.statement().text(true)).value()) ==
                hostile::welcome);
        return out;
    };
    constexpr std::uint16_t put_begin = 0x100, ping = 0x105, agree = 0x106, agreed = 0x10e;
    const std::string shard(4096, 's');
    const auto of = [&](std::uint64_t number, std::uint64_t step, std::uint32_t crc) -> json {
        return {{"job", number}, {"generation", generation}, {"rank", 0},      {"key_generation", generation},
                {"step", step},  {"bytes", shard.size()},    {"chunks", {crc}}};
    };
    auto one = n1_at_n2();
    const auto crc = banyan::crc32c(std::as_bytes(std::span(shard)));
    CHECK(one.ask(put_begin, of(1, 77, crc + 1), shard) == json{{"bad", {0}}});
    CHECK(one.ask(put_begin, of(9, 77, crc), shard)->contains("error"));  // no such job
    CHECK(one.ask(put_begin, of(1, 77, crc), shard) == json{{"bad", json::array()}});
    CHECK(one.ask(put_begin, of(1, 77, crc), shard)->contains("have"));
    for (const auto& packed : {std::string(8, '\1'), std::string(7, '\0'), std::string(200, '\xff')}) {
        const auto refused = one.ask(agree, {{"job", 1}, {"generation", generation}}, packed);
        CHECK((refused && refused->contains("error")));
        CHECK(one.say(agreed, {{"job", 1}, {"generation", generation}}, packed));  // not answered
    }
    CHECK(one.ask(ping, json::object()) == json::object());  // the stream is whole
    CHECK(one.say(put_begin, of(1, 78, 0), std::string(300'000, 's'), 200'000));
    CHECK(hostile::is_closed(one.fd()));
    auto hung = n1_at_n2();
    CHECK(hung.say(put_begin, of(1, 79, crc), shard, 1000));
    job.saves(2);  // waits up to 20 s
}

TEST_CASE("a header makes the daemon hold no more than it brought", "[hostile]") {
    raise_files();
    cluster c({2, "", {}});
    training job(c);
    job.saves(1);
    const auto before = hostile::resident(c.pid(1));
    std::vector<banyan::unique_fd> strangers;
    const auto head = wire::encode_header(
        {0xff01, static_cast<std::uint32_t>(wire::max_meta), static_cast<std::uint32_t>(wire::max_body)});
    for (int i = 0; i < 400; ++i) {
        strangers.push_back(hostile::dial(c.addr(1), c.port(), true, address(i)));
        REQUIRE(::send(strangers.back().get(), head.data(), head.size(), MSG_NOSIGNAL) > 0);
    }
    // A metadata length within the limit, and nothing behind it.
    const auto waiting = wire::encode_header({0xff01, 8000, 0});
    for (int i = 0; i < 400; ++i) {
        strangers.push_back(hostile::dial(c.addr(1), c.port(), true, address(i)));
        REQUIRE(::send(strangers.back().get(), waiting.data(), waiting.size(), MSG_NOSIGNAL) > 0);
    }
    for (int i = 0; i < 400; ++i) CHECK(hostile::is_closed(strangers[static_cast<std::size_t>(i)].get()));
    // The old reader took 20 MB for each of the first; all 800 together may take 40.
    CHECK(hostile::resident(c.pid(1)) < before + (40u << 20));
    job.saves(2);
}

TEST_CASE("connections that say nothing lock no daemon out", "[hostile]") {
    raise_files();
    cluster c({2, "", {}});
    training job(c);
    std::vector<banyan::unique_fd> strangers;
    for (int i = 0; i < 1500; ++i) {
        strangers.push_back(hostile::dial(c.addr(1), c.port(), true, address(i % 700)));
        strangers.push_back(hostile::dial(c.addr(2), c.port(), true, address(i % 700)));
    }
    job.saves(1);
    // A daemon that comes back finds its way in, too.
    c.kill(2, SIGKILL);
    REQUIRE(c.start(2));
    c.open(c.request(1, 2, 1, "", 0));
    job.ranks().clear();
    c.new_step(1, 0, {1, 2});
    auto next = start_ranks(c, 1, {1, 2});
    CHECK(next[0].ask("restart") == restored_state{.step = 1, .source = BCK_FROM_LOCAL});
    CHECK(next[1].ask("restart") == restored_state{.step = 1, .source = BCK_FROM_PEER});
    std::uint64_t step = 2;
    CHECK(eventually([&] {
        ask_all(next, "save " + std::to_string(step));  // the first may meet the dead connection
        return ask_all(next, "wait " + std::to_string(step++) + " 2 1000").front() == BCK_OK;
    }));
    // Whoever says nothing for the handshake's five seconds is gone.
    CHECK(hostile::is_closed(strangers.back().get()));
}

TEST_CASE("with encryption nobody on the wire reads state", "[hostile]") {
    if (::geteuid() != 0) return;
    for (const bool encrypt : {false, true}) {
        cluster c({2, encrypt ? "[peers]\nencrypt = true\n" : "", {}});
        training job(c);
        const hostile::wire_tap tap;
        job.saves(1);
        if (encrypt)
            CHECK_FALSE(tap.saw(mark_of_state));
        else
            CHECK(eventually([&] { return tap.saw(mark_of_state); }));
    }
}

TEST_CASE("a job's copies on its neighbour count as its own", "[hostile]") {
    // Room for a rank's three buffers, not for the copy of another's.
    cluster c({2, "job_memory_limit = \"34M\"\n", {}});
    auto request = c.request(1, 2, 1, "", 0);
    request.bytes = state_bytes;  // so that the buffers are there before the first copy comes
    c.open(request);
    auto ranks = start_ranks(c, 1, {1, 2});
    all_are(ask_all(ranks, "save 1"), BCK_OK);
    const auto told = [&](int node) { return c.session(node, 1)["warning"].get<std::string>(); };
    CHECK(eventually([&] { return told(1).find("job_memory_limit") != std::string::npos; }));
    CHECK(c.counter(2, 1, "peer_bytes_received") == 0);
    all_are(ask_all(ranks, "wait 1 " + std::to_string(memory_tier) + " 20000"), BCK_OK);
}

TEST_CASE("so do copies that are still on their way to it", "[hostile]") {
    cluster c({2, "job_memory_limit = \"20M\"\n", {}});
    c.open(c.request(1, 2, 2, "", 0));
    const auto copy_of = [&](int rank) {
        const auto generation = c.session(2, 1)["generation"];
        return json{
            {"job", 1},   {"generation", generation}, {"rank", rank},       {"key_generation", generation},
            {"step", 77}, {"bytes", 12 << 20},        {"chunks", {1, 2, 3}}};
    };
    std::vector<hostile::caller> from;
    from.reserve(2);
    for (const int rank : {0, 1}) {
        auto& one = from.emplace_back(c.addr(2), c.port(), "n1", "n2");
        REQUIRE(one.greet());
        REQUIRE(one.prove(munge::encode(munge_socket(c), one.statement().text(true)).value()) ==
                hostile::welcome);
        const auto begun = one.ask(0x100, copy_of(rank));
        REQUIRE(begun);
        INFO(begun->dump());
        CHECK(begun->contains("error") == (rank == 1));
        CHECK(c.session(2, 1)["memory_bytes"] == 12 << 20);
    }
}
