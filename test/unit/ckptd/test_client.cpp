// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions as a program meets them that has no daemon, or one of another release: what they refuse,
// and that they end.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <banyan/ckpt.h>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ckptd/protocol/local_protocol.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "common/wire.hpp"
#include "test/scratch_path.hpp"

namespace {

struct session {
    session() { bck_init("1", 0, 1); }
    ~session() { bck_finalize(0); }
};

// Listens, and gives whoever attaches the same answer.
class answering_daemon {
  public:
    answering_daemon(const std::string& path, nlohmann::json answer) {
        ::unlink(path.c_str());
        sockaddr_un at{};
        at.sun_family = AF_UNIX;
        REQUIRE(path.size() < sizeof at.sun_path);
        std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
        listener_ = banyan::unique_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
        REQUIRE(::listen(listener_.get(), 8) == 0);
        thread_ = std::jthread([this, answer = std::move(answer)] { serve(answer); });
    }
    ~answering_daemon() { ::shutdown(listener_.get(), SHUT_RDWR); }
    answering_daemon(const answering_daemon&) = delete;

    /// What the last one said.
    nlohmann::json asked() {
        const std::scoped_lock held(lock_);
        return asked_;
    }

  private:
    void serve(const nlohmann::json& answer) {
        for (;;) {
            const banyan::unique_fd one(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
            if (!one) return;
            const auto until = banyan::clock::now() + std::chrono::seconds(20);
            while (const auto said = banyan::wire::receive_frame(one.get(), until)) {
                if (said->type == static_cast<std::uint16_t>(banyan::ckpt::message::attach)) {
                    const std::scoped_lock held(lock_);
                    asked_ = said->meta;
                }
                constexpr auto reply = static_cast<std::uint16_t>(banyan::ckpt::message::reply);
                if (!banyan::wire::send_frame(one.get(), reply, answer, {}, until)) break;
            }
        }
    }

    banyan::unique_fd listener_;
    std::mutex lock_;
    nlohmann::json asked_;
    std::jthread thread_;
};

}  // namespace

TEST_CASE("a million regions are protected, and replaced, while one looks on", "[client]") {
    const session s;
    const std::uint64_t one = 1;
    std::vector<double> values(1'000'000);
    int wrong = 0;
    for (int round = 0; round < 2; ++round)
        for (std::size_t i = 0; i < values.size(); ++i)
            wrong += bck_protect(("r" + std::to_string(i)).c_str(), &values[i], 8, "F64", &one, 1) != BCK_OK;
    CHECK(wrong == 0);
    CHECK(bck_protect("one more", values.data(), 8, "F64", &one, 1) == BCK_E_INVALID);
    CHECK(std::string(bck_error()) == "more than 1000000 regions");
    CHECK(bck_protect("r7", values.data(), 8, "F64", &one, 1) == BCK_OK);
}

TEST_CASE("names that cannot be written are refused where they are given", "[client]") {
    const session s;
    char byte = 0;
    CHECK(bck_protect_bytes("G\xc3\xb6"
                            "del",
                            &byte, 1) == BCK_OK);
    for (const char* name : {"", "__metadata__", "\xff", "cut \xc3", "\xed\xa0\x80"})
        CHECK(bck_protect_bytes(name, &byte, 1) == BCK_E_INVALID);
    CHECK(bck_protect_bytes(nullptr, &byte, 1) == BCK_E_INVALID);
    CHECK(bck_protect_bytes(std::string(512, 'a').c_str(), &byte, 1) == BCK_OK);
    CHECK(bck_protect_bytes(std::string(513, 'a').c_str(), &byte, 1) == BCK_E_INVALID);
    CHECK(bck_protect_bytes("\x1b[2J\xff", &byte, 1) == BCK_E_INVALID);
    CHECK(std::string(bck_error()) == "the region's name \"\\x1b[2J\\xff\" is not UTF-8");
}

TEST_CASE("shapes that overflow or do not fit are refused", "[client]") {
    const session s;
    std::vector<float> data(8);
    constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
    const auto protect = [&](std::vector<std::uint64_t> shape, std::size_t bytes) {
        return bck_protect("w", data.data(), bytes, "F32", shape.data(), static_cast<int>(shape.size()));
    };
    CHECK(protect({2, 4}, 32) == BCK_OK);
    CHECK(protect({huge, huge}, 32) == BCK_E_INVALID);
    CHECK(protect({1ull << 62, 4, 4}, 0) == BCK_E_INVALID);
    CHECK(protect({2, 4}, 31) == BCK_E_INVALID);
    CHECK(protect({0, 4}, 0) == BCK_OK);
    CHECK(protect(std::vector<std::uint64_t>(16, 1), 4) == BCK_OK);
    CHECK(protect(std::vector<std::uint64_t>(17, 1), 4) == BCK_E_INVALID);
    CHECK(bck_protect("w", data.data(), 4, "F32", nullptr, 1) == BCK_E_INVALID);
    CHECK(bck_protect("w", data.data(), 4, "F32", nullptr, -1) == BCK_E_INVALID);
    CHECK(bck_protect("w", nullptr, 4, "F32", nullptr, 0) == BCK_E_INVALID);
    CHECK(bck_protect("w", data.data(), 4, "f32", nullptr, 0) == BCK_E_INVALID);
}

TEST_CASE("an address at which the process has nothing is refused by the region's name", "[client]") {
    const session s;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    auto* const at = static_cast<char*>(
        ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(at != MAP_FAILED);
    CHECK(bck_protect_bytes("whole", at, 2 * page) == BCK_OK);
    REQUIRE(::munmap(at + page, page) == 0);
    CHECK(bck_protect_bytes("first", at, page) == BCK_OK);
    CHECK(bck_protect_bytes("second", at + page, page) == BCK_E_DEVICE);
    CHECK(std::string(bck_error()).starts_with("region \"second\": this process has no memory at 0x"));
    CHECK(bck_protect_bytes("both", at, 2 * page) == BCK_E_DEVICE);
    CHECK(bck_protect_bytes("nothing", at + page, 0) == BCK_OK);
    CHECK(bck_protect_bytes("beyond", at, std::numeric_limits<std::size_t>::max()) == BCK_E_DEVICE);
    ::munmap(at, page);
    CHECK(bck_has_cuda() == 0);
    CHECK(std::string(bck_version()).find('.') != std::string::npos);
}

TEST_CASE("a piece lies within its tensor, whatever the numbers are", "[client]") {
    const session s;
    std::vector<float> data(8);
    constexpr auto huge = std::numeric_limits<std::uint64_t>::max();
    const std::vector<std::uint64_t> shape{2, 4};
    const auto protect = [&](std::vector<std::uint64_t> global, std::vector<std::uint64_t> offset) {
        return bck_protect_piece("w", data.data(), 32, "F32", shape.data(), 2, global.data(), offset.data());
    };
    CHECK(protect({2, 4}, {0, 0}) == BCK_OK);
    CHECK(protect({4, 8}, {2, 4}) == BCK_OK);
    CHECK(protect({4, 8}, {3, 4}) == BCK_E_INVALID);
    CHECK(protect({4, 8}, {2, 5}) == BCK_E_INVALID);
    CHECK(protect({4, 8}, {huge, 4}) == BCK_E_INVALID);
    CHECK(protect({huge, 8}, {huge - 1, 4}) == BCK_E_INVALID);
    CHECK(protect({huge, huge}, {0, 0}) == BCK_E_INVALID);
    CHECK(bck_protect_piece("w", data.data(), 32, "F32", shape.data(), 2, nullptr, shape.data()) ==
          BCK_E_INVALID);
    CHECK(bck_protect_piece("s", data.data(), 4, "F32", nullptr, 0, shape.data(), shape.data()) == BCK_OK);
}

TEST_CASE("regions are withdrawn and come back, a million at a time", "[client]") {
    const session s;
    CHECK(bck_unprotect("never") == BCK_E_INVALID);
    CHECK(bck_unprotect(nullptr) == BCK_E_INVALID);
    int wrong = 0;
    double value = 0;
    for (int round = 0; round < 2; ++round) {
        for (int i = 0; i < 1'000'000; ++i)
            wrong += bck_protect_bytes(std::to_string(i).c_str(), &value, 8) != BCK_OK;
        for (int i = 0; i < 1'000'000; ++i) wrong += bck_unprotect(std::to_string(i).c_str()) != BCK_OK;
    }
    CHECK(wrong == 0);
    CHECK(bck_unprotect("7") == BCK_E_INVALID);
    CHECK(bck_checkpoint(1) == BCK_E_INVALID);
    CHECK(std::string(bck_error()) == "no region is protected");
}

TEST_CASE("without a daemon regions for one call are no error of their own", "[client]") {
    const std::uint64_t one = 1;
    double value = 0;
    const bck_tensor given{"w", &value, 8, "F64", 1, &one, nullptr, nullptr};
    CHECK(bck_checkpoint_of(1, &given, 1) == BCK_E_INVALID);
    const session s;
    CHECK(bck_checkpoint_of(1, nullptr, 1) == BCK_E_INVALID);
    CHECK(bck_checkpoint_of(1, &given, 1) == BCK_E_NODAEMON);
    CHECK(bck_restart_into(nullptr, nullptr, nullptr, 1) == BCK_E_INVALID);
    CHECK(bck_restart_into(nullptr, nullptr, &given, 1) == BCK_E_NODAEMON);
    CHECK(bck_checkpoint(1) == BCK_E_INVALID);  // it was for that call alone
}

TEST_CASE("without a daemon, or out of turn, asking what there is says so", "[client]") {
    bck_contents* contents = reinterpret_cast<bck_contents*>(&contents);
    CHECK(bck_stat(&contents) == BCK_E_INVALID);
    CHECK(std::string(bck_error()) == "bck_init was not called");
    CHECK(contents == nullptr);
    const session s;
    CHECK(bck_stat(&contents) == BCK_E_NODAEMON);
    CHECK(bck_stat(nullptr) == BCK_E_INVALID);
    CHECK(contents == nullptr);
    CHECK(bck_contents_size(contents) == 0);
    CHECK(bck_contents_step(contents) == 0);
    bck_region region{};
    CHECK(bck_contents_at(contents, 0, &region) == BCK_E_INVALID);
    CHECK(bck_contents_find(contents, "w", &region) == BCK_E_INVALID);
    bck_contents_free(contents);
}

// Daemons of other releases, by hand: one that answers as it did before there were numbers, one that answers
// by a number that this library does not know, and one that refuses.
TEST_CASE("a daemon of another release is refused by the numbers of both", "[client]") {
    const auto socket = banyan::testing::scratch_path("s").string();
    const auto speaks = banyan::ckpt::in_words(banyan::ckpt::local_protocol);
    const std::vector<std::pair<nlohmann::json, std::string>> daemons{
        {{{"buffers", 3}, {"buffer_bytes", 4096}, {"generation", 1}},
         "the daemon speaks an older protocol, this library " + speaks},
        {{{"buffers", 3}, {"buffer_bytes", 4096}, {"generation", 1}, {"protocol", 99}},
         "the daemon speaks protocol 99, this library " + speaks},
        {banyan::wire::error_meta({banyan::errc::conflict, "speaks protocol 98", "ask for it"}),
         "speaks protocol 98; ask for it"}};
    for (const auto& [answer, words] : daemons) {
        INFO(words);
        answering_daemon daemon(socket, answer);
        ::setenv("BANYAN_CKPT_SOCKET", socket.c_str(), 1);
        char state = 1;
        CHECK(bck_init("7", 0, 1) == BCK_OK);
        CHECK(bck_protect_bytes("state", &state, 1) == BCK_OK);
        CHECK(bck_checkpoint(1) == BCK_E_REFUSED);
        CHECK(std::string(bck_error()).starts_with(words));
        CHECK(daemon.asked()["protocol"] ==
              nlohmann::json{banyan::ckpt::local_protocol.oldest, banyan::ckpt::local_protocol.newest});
        bck_finalize(0);
        ::unsetenv("BANYAN_CKPT_SOCKET");
    }
}
