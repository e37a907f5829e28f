// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/connection.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/json_fields.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::seconds connect_timeout{2};
constexpr std::chrono::seconds attach_timeout{60};  // the daemon may have to make the memory first

wire::deadline in(std::chrono::milliseconds time) { return std::chrono::steady_clock::now() + time; }

}  // namespace

result<void> connection::open(const std::string& socket) {
    close();
    auto fd = wire::connect_unix(socket, in(connect_timeout));
    if (!fd)
        return fail(fd.error().code, fd.error().what,
                    "slurmd's log on this node says why no daemon is there");
    fd_ = std::move(*fd);
    return {};
}

void connection::close() {
    fd_.reset();
    map_ = mapping();
    buffers_ = 0;
    buffer_bytes_ = 0;
}

result<std::string> connection::attach(std::uint64_t job, std::optional<std::uint32_t> step,
                                       std::uint32_t rank, std::uint32_t world, std::uint64_t bytes,
                                       bool populate) {
    const auto until = in(attach_timeout);
    nlohmann::json meta{{"job", job}, {"rank", rank}, {"world", world}, {"bytes", bytes}};
    if (step) meta["step"] = *step;
    BANYAN_CHECK(wire::send_frame(fd_.get(), static_cast<std::uint16_t>(message::attach), meta, {}, until));
    unique_fd memory;
    BANYAN_TRY(const auto reply, wire::receive_frame(fd_.get(), until, &memory));
    if (auto refused = wire::error_from(reply.meta)) return std::unexpected(std::move(*refused));
    BANYAN_TRY(buffers_, json_fields(reply.meta).number("buffers", max_buffers));
    BANYAN_TRY(buffer_bytes_, json_fields(reply.meta).number("buffer_bytes", 1ull << 48));
    BANYAN_TRY(generation_, json_fields(reply.meta).number("generation"));
    kept_ = json_fields(reply.meta).flag("kept").value_or(false);
    const auto size = rank_memory_bytes(buffers_, buffer_bytes_);
    struct stat st {};
    if (!memory || ::fstat(memory.get(), &st) != 0 || static_cast<std::uint64_t>(st.st_size) < size ||
        buffer_bytes_ < bytes)
        return fail(errc::invalid_input, "the daemon's memory is not what it says");
    void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
    if (at == MAP_FAILED) return fail_errno("cannot map the daemon's memory", errno);
    map_ = mapping(at, size);
    populated_ = false;
    if (populate) this->populate();
    ::madvise(at, size, MADV_DONTFORK);  // a forked helper must not write, nor keep the memory alive
    if (header().magic != rank_memory_magic || header().rank != rank || header().job != job)
        return fail(errc::invalid_input, "the daemon's memory has another layout",
                    "install the same banyan release everywhere");
    return json_fields(reply.meta).text("warning", 64 * 1024).value_or("");
}

// The pages exist: they come into the mapping, for writing as for reading.
void connection::populate() {
    if (!map_ || std::exchange(populated_, true)) return;
    if (::madvise(map_.data(), map_.size(), MADV_POPULATE_WRITE) == 0) return;
    for (std::size_t at = 0; at < map_.size(); at += page_bytes)  // Linux before 5.14
        static_cast<void>(*static_cast<const volatile std::byte*>(map_.data() + at));
}

result<nlohmann::json> connection::call(message type, const nlohmann::json& meta,
                                        std::chrono::milliseconds timeout,
                                        const std::function<void()>& meanwhile) {
    auto until = in(timeout);
    BANYAN_CHECK(wire::send_frame(fd_.get(), static_cast<std::uint16_t>(type), meta, {}, until));
    if (meanwhile) {
        meanwhile();
        until = in(timeout);
    }
    BANYAN_TRY(auto reply, wire::receive_frame(fd_.get(), until));
    return std::move(reply.meta);
}

bool connection::alive() const {
    if (!fd_) return false;
    char none = 0;
    return ::recv(fd_.get(), &none, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

bool connection::post(message type, const char* field, std::uint64_t value) {
    std::array<char, 64> frame{};
    const int n = std::snprintf(frame.data() + wire::header_bytes, frame.size() - wire::header_bytes,
                                "{\"%s\":%llu}", field, static_cast<unsigned long long>(value));
    const auto head =
        wire::encode_header({static_cast<std::uint16_t>(type), static_cast<std::uint32_t>(n), 0});
    std::memcpy(frame.data(), head.data(), head.size());
    const std::size_t bytes = wire::header_bytes + static_cast<std::size_t>(n);
    // The frame is far smaller than the socket's buffer: all of it or nothing.
    for (;;) {
        const auto put = ::send(fd_.get(), frame.data(), bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put == static_cast<ssize_t>(bytes)) return true;
        if (put < 0 && errno == EINTR) continue;
        // A daemon that is only slow finds the buffer by itself with the next message.
        return put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
    }
}

}  // namespace banyan::ckpt
