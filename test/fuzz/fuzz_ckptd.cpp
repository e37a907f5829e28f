// SPDX-License-Identifier: BSD-3-Clause
//
// A whole checkpoint daemon with a few processes on its socket: the input is a list of what they do,
// well-formed or not, and of what they write into the memory that they share with the daemon. It must go on
// answering.
#include <array>
#include <filesystem>

#include <arpa/inet.h>
#include <boost/asio/io_context.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "ckptd/daemon/daemon.hpp"
#include "common/json_fields.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using namespace banyan::ckpt;
using fuzz::must;

namespace {

constexpr std::size_t clients = 4, max_ops = 24;
constexpr std::uint32_t ranks = 4;

std::uint16_t free_port() {
    const unique_fd s(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof a;
    must(::bind(s.get(), reinterpret_cast<sockaddr*>(&a), n) == 0);
    must(::getsockname(s.get(), reinterpret_cast<sockaddr*>(&a), &n) == 0);
    return ntohs(a.sin_port);
}

/// The daemon, for all inputs of this process; its files lie in memory and go with the process.
class world {
  public:
    world() : directory_(fmt::format("/dev/shm/banyan-fuzz-ckptd-{}", ::getpid())) {
        spdlog::set_level(spdlog::level::off);
        std::filesystem::create_directories(directory_);
        auto s = load_settings({}, "n01").value();
        s.node = "a";
        s.socket = directory_ + "/socket";
        s.bind = "127.0.0.1";
        s.port = free_port();
        s.memory_limit = 8u << 20;
        s.munge_socket = directory_ + "/no-munge";
        daemon_ = std::make_unique<ckpt::daemon>(
            io_, s, std::make_shared<banyan::ckpt::keeper::custody>(banyan::unique_fd()));
        must(daemon_->open().has_value());
        socket_ = s.socket;
        std::atexit([] {
            std::error_code ignored;
            std::filesystem::remove_all(fmt::format("/dev/shm/banyan-fuzz-ckptd-{}", ::getpid()), ignored);
        });
    }

    const std::string& directory() const { return directory_; }
    const std::string& socket() const { return socket_; }

    /// Lets the daemon work until `fd` has something to read, or for so long.
    bool work(int fd, milliseconds most) {
        const auto until = banyan::clock::now() + most;
        do {
            pollfd p{fd, POLLIN, 0};
            if (fd >= 0 && ::poll(&p, 1, 0) > 0) return true;
            io_.run_one_for(milliseconds(1));
        } while (banyan::clock::now() < until);
        return false;
    }

  private:
    std::string directory_, socket_;
    asio::io_context io_;
    std::unique_ptr<ckpt::daemon> daemon_;
};

/// One process: its connection and the memory it was given.
class trainer {
  public:
    explicit trainer(world& w) : world_(w) {}
    ~trainer() { leave(); }
    trainer(const trainer&) = delete;
    trainer& operator=(const trainer&) = delete;

    void leave() {
        socket_.reset();
        if (memory_) ::munmap(memory_, page_bytes);
        memory_ = nullptr;
    }

    void send(std::uint16_t type, std::string_view meta, milliseconds timeout = milliseconds(3)) {
        if (!socket_) join();
        wire::header head;
        head.type = type;
        head.meta_bytes = static_cast<std::uint32_t>(meta.size());
        const auto bytes = wire::encode_header(head);
        std::string frame(reinterpret_cast<const char*>(bytes.data()), bytes.size());
        frame += meta;
        raw(frame, timeout);
    }
    void send(message type, const json& meta, milliseconds timeout = milliseconds(3)) {
        send(static_cast<std::uint16_t>(type), meta.dump(), timeout);
    }

    void raw(std::string_view bytes, milliseconds timeout = milliseconds(3)) {
        if (!socket_) join();
        if (::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
            return leave();
        if (world_.work(socket_.get(), timeout)) receive();
    }

    /// The header page of the memory that came last, as an attached rank sees it.
    rank_memory_header* header() const { return memory_; }
    std::uint64_t generation() const { return generation_; }
    std::uint64_t answers() const { return answers_; }

  private:
    void join() {
        socket_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_un a{};
        a.sun_family = AF_UNIX;
        std::strncpy(a.sun_path, world_.socket().c_str(), sizeof a.sun_path - 1);
        must(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&a), sizeof a) == 0);
        world_.work(-1, milliseconds(0));
    }

    void receive() {
        unique_fd passed;
        const auto got =
            wire::receive_frame(socket_.get(), banyan::clock::now() + milliseconds(100), &passed);
        if (!got) return leave();
        ++answers_;
        generation_ = json_fields(got->meta).number("generation").value_or(generation_);
        if (!passed) return;
        void* at = ::mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, passed.get(), 0);
        must(at != MAP_FAILED);
        if (memory_) ::munmap(memory_, page_bytes);
        memory_ = static_cast<rank_memory_header*>(at);
    }

    world& world_;
    unique_fd socket_;
    rank_memory_header* memory_ = nullptr;
    std::uint64_t generation_ = 0, answers_ = 0;
};

json open_request(fuzz::input& in, const world& w) {
    const auto job = 1 + in.byte() % 3;
    const bool two = in.byte() % 2 != 0;
    json nodes = json::array(), mine = json::array(), other = json::array();
    for (std::uint32_t r = 0; r < ranks; ++r) (two && r % 2 != 0 ? other : mine).push_back(r);
    json one;
    one["name"] = "a";
    one["addr"] = "127.0.0.1";
    one["ranks"] = mine;
    one["buddy"] = two ? 1 : 0;
    nodes.push_back(one);
    if (two) {
        one["name"] = "b";
        one["ranks"] = other;
        one["buddy"] = 0;
        nodes.push_back(one);
    }
    json spare;
    spare["name"] = "c";
    spare["addr"] = "127.0.0.1";
    json meta;
    meta["job"] = job;
    meta["restart"] = in.byte() % 4;
    meta["uid"] = ::getuid();
    meta["gid"] = ::getgid();
    meta["self"] = "a";
    meta["world"] = ranks;
    meta["dir"] = in.byte() % 2 != 0 ? "" : w.directory() + "/steps";
    meta["every"] = 1;
    meta["flush"] = in.byte() % 3;
    meta["buffers"] = 2 + in.byte() % 3;
    meta["bytes"] = in.byte() % 2 != 0 ? 0 : in.up_to(1u << 18);
    meta["nodes"] = nodes;
    meta["spares"] = json::array({spare});
    return meta;
}

json step_request(fuzz::input& in) {
    json meta;
    meta["job"] = 1 + in.byte() % 3;
    meta["step"] = in.byte() % 8;
    meta["nodes"] = json::array();
    static constexpr std::array names{"a", "b", "c"};
    for (auto n = 1 + in.byte() % 2; n > 0; --n) meta["nodes"].push_back(names[in.byte() % names.size()]);
    if (in.byte() % 2 != 0) meta["buddies"] = json::array({in.byte() % 2, in.byte() % 3});
    return meta;
}

void write_buffer(fuzz::input& in, const trainer& p) {
    if (!p.header()) return;
    auto& buffer = p.header()->buffer[in.byte() % max_buffers];
    const auto kind = in.byte();
    const auto step = kind % 2 != 0 ? in.byte() : in.number<std::uint64_t>();
    const auto bytes = kind % 4 < 2 ? in.up_to(1u << 16) : in.number<std::uint64_t>();
    const auto generation = kind % 8 < 4 ? p.generation() + in.byte() % 2 : in.number<std::uint64_t>();
    begin_write(buffer);
    end_write(buffer, step, generation, bytes);
}

void write_word(fuzz::input& in, rank_memory_header* memory) {
    if (!memory) return;
    const auto at = in.up_to(page_bytes / 8 - 1);
    reinterpret_cast<shared_word*>(memory)[at].store(in.number<std::uint64_t>());
}

void act(fuzz::input& in, trainer& p, world& w) {
    json meta;
    switch (in.byte() % 14) {
        case 0:
            return p.leave();
        case 1: {
            const auto type = in.byte();
            return p.send(type, in.text());
        }
        case 2:
            return p.raw(in.text());
        case 3:
            return p.send(message::session_open, open_request(in, w), milliseconds(50));
        case 4:
            return p.send(message::step_open, step_request(in), milliseconds(50));
        case 5:
        case 6:
            meta["job"] = 1 + in.byte() % 3;
            meta["rank"] = in.byte() % ranks;
            meta["world"] = ranks;
            meta["bytes"] = in.byte() % 4 != 0 ? in.up_to(1u << 16) : in.number<std::uint64_t>();
            meta["protocol"] = {local_protocol.oldest, local_protocol.newest};
            return p.send(message::attach, meta, milliseconds(20));
        case 7:
            return write_buffer(in, p);
        case 8:
            return write_word(in, p.header());
        case 9:
        case 10:
            meta["buffer"] = in.byte() % (max_buffers + 1);
            return p.send(message::sealed, meta, milliseconds(1));
        case 11:
            meta["buffer"] = in.byte() % (max_buffers + 1);
            return p.send(in.byte() % 2 != 0 ? message::restore : message::skipped, meta, milliseconds(20));
        case 12:
            meta["drain"] = in.byte() % 4 == 0;
            return p.send(message::finalize, meta);
        default:
            meta["job"] = in.byte() % 4;
            meta["timeout_ms"] = 2;
            static constexpr std::array types{message::seal_now, message::session_detach,
                                              message::session_close};
            return p.send(types[in.byte() % types.size()], meta);
    }
}

}  // namespace

// The daemon's workers go on between two inputs: what one of them holds when the sanitizer looks is no leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static auto& w = *new world;
    fuzz::input in(data, size);
    {
        std::array<trainer, clients> all{trainer(w), trainer(w), trainer(w), trainer(w)};
        for (std::size_t op = 0; op < max_ops && !in.empty(); ++op) act(in, all[in.byte() % clients], w);
    }
    trainer last(w);
    json meta = json::object();
    for (const auto job : {1, 2, 3}) {
        meta["job"] = job;
        last.send(message::session_close, meta, milliseconds(10'000));
    }
    last.send(message::status, json::object(), milliseconds(10'000));
    must(last.answers() == 4);
    return 0;
}
