// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/connection.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <banyan/ckpt.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/json_fields.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::seconds connect_timeout{2};
constexpr std::chrono::seconds attach_timeout{60};  // the daemon may have to make the memory first

constexpr auto other_release =
    "use the libbanyan_ckpt.so.0 beside the daemon's socket, which is of its release";

wire::deadline in(std::chrono::milliseconds time) { return clock::now() + time; }

// The range is no longer ours to unmap: another thread's memory may lie there in a moment, or lies there.
void forget(mapping m) {
    alignas(mapping) std::array<std::byte, sizeof(mapping)> never_unmapped{};
    new (never_unmapped.data()) mapping(std::move(m));
}

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
    // A child of fork() has none of it: what lies there is the child's own.
    if (map_ && !attached()) forget(std::move(map_));
    map_ = mapping();
    lead_ = 0;
    parts_.clear();
    buffers_ = 0;
    buffer_bytes_ = 0;
}

result<std::string> connection::attach(const rank_name& who, std::uint64_t bytes, bool populate,
                                       const std::function<void()>& moves) {
    const auto until = in(attach_timeout);
    refused_ = false;
    nlohmann::json meta{{"job", who.job},     {"rank", who.rank},
                        {"world", who.world}, {"bytes", bytes},
                        {"huge", maps_huge_}, {"protocol", {local_protocol.oldest, local_protocol.newest}}};
    if (who.step) meta["step"] = *who.step;
    if (!who.state.empty()) meta["state"] = who.state;
    // A type of its own: a daemon that knows of no named states would hand out the other one's memory.
    const auto type = who.state.empty() ? message::attach : message::attach_state;
    BANYAN_CHECK(wire::send_frame(fd_.get(), static_cast<std::uint16_t>(type), meta, {}, until));
    unique_fd memory;
    BANYAN_TRY(const auto reply, wire::receive_frame(fd_.get(), until, &memory));
    if (auto refused = wire::error_from(reply.meta)) {
        refused_ = true;
        if (!who.state.empty() && refused->code == errc::invalid_input)
            refused->hint = "states with names need a daemon of this library's release";
        return std::unexpected(std::move(*refused));
    }
    if (const auto agreed = json_fields(reply.meta).number("protocol", UINT32_MAX);
        !agreed || !local_protocol.has(static_cast<std::uint32_t>(*agreed)))
        return fail(errc::invalid_input,
                    fmt::format("the daemon speaks {}, this library {}",
                                agreed ? fmt::format("protocol {}", *agreed) : "an older protocol",
                                in_words(local_protocol)),
                    other_release);
    BANYAN_TRY(buffers_, json_fields(reply.meta).number("buffers", max_buffers));
    BANYAN_TRY(buffer_bytes_, json_fields(reply.meta).number("buffer_bytes", 1ull << 48));
    BANYAN_TRY(generation_, json_fields(reply.meta).number("generation"));
    kept_ = json_fields(reply.meta).flag("kept").value_or(false);
    replicates_ = json_fields(reply.meta).flag("replicates").value_or(true);
    stores_ = json_fields(reply.meta).flag("stores").value_or(true);
    joined_shape shape{page_bytes, buffers_};
    if (const json_fields in(reply.meta); in.has("header")) {
        BANYAN_TRY(shape.header, in.number("header", huge_page_bytes));
    }
    if (shape.header != page_bytes && shape.header != huge_page_bytes)
        return fail(errc::invalid_input, "the daemon's memory has another layout", other_release);
    if (buffers_ == 0 || buffer_bytes_ < bytes)
        return fail(errc::invalid_input, "the daemon's memory is not what it says");
    BANYAN_TRY(auto parts, receive_parts(reply.meta, std::move(memory), shape.header, until));
    moves();
    auto mapped = map(parts, shape);
    // Whatever keeps this process from huge pages, there are others.
    if (!mapped && shape.lead() != 0 && std::exchange(maps_huge_, false))
        return attach(who, bytes, populate, moves);
    BANYAN_TRY(map_, std::move(mapped));
    mapped_by_ = ::getpid();
    lead_ = shape.lead();
    parts_ = std::move(parts);
    for (auto& p : parts_) p.fd.reset();
    populated_ = false;
    if (populate) this->populate();
    ::madvise(map_.data(), map_.size(), MADV_DONTFORK);  // a forked helper must not write, nor keep it alive
    if (!is_rank_memory(header().magic) || header().rank != who.rank || header().job != who.job)
        return fail(errc::invalid_input, "the daemon's memory has another layout", other_release);
    return json_fields(reply.meta).text("warning", 64 * 1024).value_or("");
}

result<std::vector<connection::part>> connection::receive_parts(const nlohmann::json& reply, unique_fd first,
                                                                std::uint64_t header, wire::deadline until) {
    std::vector<std::uint64_t> each{buffer_bytes_};
    if (const json_fields in(reply); in.has("parts")) {
        BANYAN_TRY(each, in.numbers<std::uint64_t>("parts", max_parts));
    }
    std::vector<part> out;
    std::uint64_t all = 0;
    for (const auto bytes : each) {
        unique_fd fd(first.release());
        if (!out.empty()) {
            const nlohmann::json meta{{"part", out.size()}};
            BANYAN_CHECK(wire::send_frame(fd_.get(), static_cast<std::uint16_t>(message::attach_part), meta,
                                          {}, until));
            BANYAN_TRY(const auto answer, wire::receive_frame(fd_.get(), until, &fd));
            if (auto refused = wire::error_from(answer.meta)) return std::unexpected(std::move(*refused));
        }
        struct stat st {};
        const auto before = out.empty() ? header : 0;
        if (!fd || ::fstat(fd.get(), &st) != 0 || bytes == 0 || bytes > buffer_bytes_ ||
            bytes % header != 0 || static_cast<std::uint64_t>(st.st_size) < before + buffers_ * bytes)
            return fail(errc::invalid_input, "the daemon's memory is not what it says");
        all += bytes;
        out.push_back({std::move(fd), st.st_dev, st.st_ino, bytes});
    }
    if (all != buffer_bytes_) return fail(errc::invalid_input, "the daemon's memory is not what it says");
    return out;
}

// What is mapped already moves, with its page tables: populate() finds only what is new to do. Reserved huge
// pages are mapped anew: older kernels do not move them, and to populate them is nothing.
result<mapping> connection::map(const std::vector<part>& parts, const joined_shape& shape) {
    const auto each_of = [](const std::vector<part>& of) {
        std::vector<std::uint64_t> out;
        for (const auto& p : of) out.push_back(p.each);
        return out;
    };
    const auto same = [](const part& a, const part& b) {
        return a.inode == b.inode && a.device == b.device && a.each == b.each;
    };
    const auto each = each_of(parts);
    BANYAN_TRY(auto whole, joined_space(shape, each));
    const bool grows = map_ && shape.header == page_bytes && lead_ == 0 && parts_.size() <= parts.size() &&
                       std::equal(parts_.begin(), parts_.end(), parts.begin(), same) &&
                       map_.size() == joined_pieces(shape, each_of(parts_)).back().to + parts_.back().each;
    const auto before = grows ? joined_pieces(shape, each_of(parts_)) : std::vector<joined_piece>();
    std::byte* const from = map_.data();
    if (grows) forget(std::move(map_));
    for (const auto& piece : joined_pieces(shape, each)) {
        std::byte* const to = whole.data() + piece.to;
        const auto old = std::find_if(before.begin(), before.end(), [&](const auto& b) {
            return b.part == piece.part && b.from == piece.from;
        });
        void* const at =
            old != before.end()
                ? ::mremap(from + old->to, piece.bytes, piece.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to)
                : ::mmap(to, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                         parts[piece.part].fd.get(), static_cast<off_t>(piece.from));
        if (at == MAP_FAILED) return fail_errno("cannot map the daemon's memory", errno);
    }
    return whole;
}

// The pages exist: they come into the mapping, for writing as for reading.
void connection::populate() {
    if (!map_ || std::exchange(populated_, true)) return;
    if (::madvise(map_.data(), map_.size(), MADV_POPULATE_WRITE) == 0) return;
    for (std::size_t at = 0; at < map_.size(); at += least_page_bytes)  // Linux before 5.14
        static_cast<void>(*static_cast<const volatile std::byte*>(map_.data() + at));
}

result<nlohmann::json> connection::call(message type, const nlohmann::json& meta,
                                        std::chrono::milliseconds timeout,
                                        const std::function<void()>& meanwhile, std::span<std::byte> into) {
    auto until = in(timeout);
    BANYAN_CHECK(wire::send_frame(fd_.get(), static_cast<std::uint16_t>(type), meta, {}, until));
    if (meanwhile) {
        meanwhile();
        until = in(timeout);
    }
    BANYAN_TRY(auto reply, wire::receive_frame(fd_.get(), until));
    if (reply.body.size() == into.size())
        std::ranges::copy(reply.body, into.begin());
    else if (!wire::error_from(reply.meta))
        return fail(errc::invalid_input,
                    fmt::format("the daemon sent {} bytes, not {}", reply.body.size(), into.size()));
    return std::move(reply.meta);
}

std::string_view connection::never_reaches(int level) const {
    if (attached() && level == BCK_REPLICATED && !replicates_)
        return "the job has no second node for this rank's copies: no step is ever replicated";
    if (attached() && level == BCK_DURABLE && !stores_)
        return "the job flushes no steps to a checkpoint directory: no step is ever durable";
    return {};
}

bool connection::alive() const {
    if (!fd_) return false;
    char none = 0;
    const auto seen = ::recv(fd_.get(), &none, 1, MSG_PEEK | MSG_DONTWAIT);
    // ECONNRESET: it has ended, and some of what was said to it was not read.
    return seen > 0 || (seen < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR));
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
