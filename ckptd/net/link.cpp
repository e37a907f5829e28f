// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/net/link.hpp"

#include <fmt/format.h>

#include "ckptd/buffers/memory.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/json_fields.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::seconds comeback{1};  // of a daemon that its keeper starts again
constexpr std::chrono::milliseconds dead_for{2000}, dead_at_first{50};
constexpr std::chrono::seconds chunk_timeout{5};  // for one chunk or one reply in a transfer
constexpr std::chrono::seconds probe_timeout{2};
constexpr int max_rounds = 4;

}  // namespace

link::link(asio::any_io_executor executor, link_options options)
    : executor_(executor), options_(std::move(options)), watchdog_(executor), lock_(executor) {}

void link::close() {
    watchdog_.cancel();
    if (channel_) channel_->close();
}

bool link::is_silent() const { return silent_since_ && clock::now() >= *silent_since_ + comeback; }

void link::note(bool answered) {
    if (answered)
        silent_since_.reset();
    else if (!silent_since_)
        silent_since_ = clock::now();
}

// Closing the socket ends whatever waits on it.
void link::watch(std::chrono::milliseconds timeout) {
    watchdog_.expires_after(timeout);
    watchdog_.async_wait([weak = weak_from_this()](boost::system::error_code ec) {
        if (const auto self = weak.lock(); self && !ec) self->close();
    });
}

task<result<void>> link::connect() {
    if (channel_ && channel_->is_open()) co_return result<void>{};
    if (clock::now() < dead_until_) co_return fail(errc::unavailable, dead_because_);
    auto opened = co_await peer::connect_peer(options_.host, options_.port, options_.node, *options_.peer);
    if (!opened) {
        note(false);
        dead_until_ = clock::now() + (is_silent() ? dead_for : dead_at_first);
        dead_because_ = opened.error().text();
        co_return fail(errc::unavailable, dead_because_);
    }
    channel_ = std::move(*opened);
    co_return result<void>{};
}

task<result<nlohmann::json>> link::exchange(peer_message type, nlohmann::json meta) {
    BANYAN_CO_CHECK(co_await channel_->write_frame(static_cast<std::uint16_t>(type), std::move(meta)));
    BANYAN_CO_TRY(auto reply, co_await channel_->read_frame());
    co_return std::move(reply.meta);
}

task<result<nlohmann::json>> link::call(peer_message type, nlohmann::json meta,
                                        std::chrono::milliseconds timeout) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    const bool fresh = !channel_ || !channel_->is_open();
    BANYAN_CO_CHECK(co_await connect());
    watch(timeout);
    auto reply = co_await exchange(type, meta);
    if (!reply && !fresh && clock::now() < watchdog_.expiry()) {
        // An old connection may have ended with a daemon that was started again since.
        close();
        BANYAN_CO_CHECK(co_await connect());
        watch(timeout);
        reply = co_await exchange(type, std::move(meta));
    }
    watchdog_.cancel();
    note(reply.has_value());
    if (!reply) {
        close();
        co_return fail(errc::unavailable, fmt::format("{}: {}", options_.host, reply.error().text()));
    }
    if (auto refused = wire::error_from(*reply)) co_return std::unexpected(std::move(*refused));
    co_return reply;
}

task<result<link::put_result>> link::put_on(nlohmann::json meta, std::span<const std::byte> image,
                                            std::function<bool()> wanted, std::uint64_t* sent) {
    watch(chunk_timeout);
    BANYAN_CO_TRY(const auto begun, co_await exchange(peer_message::put_begin, std::move(meta)));
    if (auto refused = wire::error_from(begun)) {
        if (refused->code != errc::exhausted) refused->code = errc::conflict;
        co_return std::unexpected(std::move(*refused));
    }
    if (begun.contains("have")) co_return put_result::done;
    if (begun.contains("busy")) co_return put_result::busy;
    std::vector<std::uint32_t> missing(chunk_count(image.size()));
    for (std::uint32_t i = 0; i < missing.size(); ++i) missing[i] = i;
    for (int round = 0; round < max_rounds && !missing.empty(); ++round) {
        for (const auto i : missing) {
            if (!wanted()) break;
            const auto chunk =
                image.subspan(i * chunk_bytes, std::min(chunk_bytes, image.size() - i * chunk_bytes));
            nlohmann::json which;
            which["i"] = i;
            watch(chunk_timeout);
            BANYAN_CO_CHECK(co_await channel_->write_frame(
                static_cast<std::uint16_t>(peer_message::put_chunk), std::move(which), chunk));
            *sent += chunk.size();
        }
        watch(chunk_timeout);
        nlohmann::json end = nlohmann::json::object();
        BANYAN_CO_TRY(const auto ended, co_await exchange(peer_message::put_end, std::move(end)));
        if (auto refused = wire::error_from(ended)) {
            refused->code = errc::conflict;
            co_return std::unexpected(std::move(*refused));
        }
        BANYAN_CO_TRY(missing, json_fields(ended).numbers("bad", chunk_count(image.size())));
        for (const auto i : missing)
            if (i >= chunk_count(image.size()))
                co_return fail(errc::invalid_input, "the peer asks for a chunk that is not there");
        if (!missing.empty() && !wanted()) co_return fail(errc::conflict, "overtaken by a newer step");
    }
    if (!missing.empty())
        co_return fail(errc::conflict,
                       fmt::format("{} chunks arrived damaged {} times", missing.size(), max_rounds));
    co_return put_result::done;
}

task<result<link::put_result>> link::put(nlohmann::json meta, std::span<const std::byte> image,
                                         std::function<bool()> wanted, std::uint64_t* sent) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    BANYAN_CO_CHECK(co_await connect());
    auto out = co_await put_on(std::move(meta), image, std::move(wanted), sent);
    watchdog_.cancel();
    // A transfer that ended half-way leaves the stream in an unknown state.
    const bool answered = !out && (out.error().code == errc::conflict || out.error().code == errc::exhausted);
    note(out || answered);
    if (!out && !answered) {
        close();
        out.error().code = errc::unavailable;
    }
    co_return out;
}

task<void> link::probe() {
    if (std::exchange(probing_, true)) co_return;
    const auto self = shared_from_this();
    const auto answer = co_await call(peer_message::ping, nlohmann::json::object(), probe_timeout);
    probing_ = false;
    // A refusal is an answer.
    if (!answer && answer.error().code != errc::unavailable) note(true);
}

task<result<std::uint64_t>> link::get_on(nlohmann::json meta, room into, std::vector<std::uint32_t>* chunks) {
    watch(chunk_timeout);
    BANYAN_CO_TRY(const auto reply, co_await exchange(peer_message::get, std::move(meta)));
    if (auto refused = wire::error_from(reply)) {
        refused->code = errc::conflict;
        co_return std::unexpected(std::move(*refused));
    }
    BANYAN_CO_TRY(const auto bytes, json_fields(reply).number("bytes", 1ull << 48));
    BANYAN_CO_TRY(*chunks, json_fields(reply).numbers("chunks", chunk_count(bytes)));
    if (bytes == 0 || chunks->size() != chunk_count(bytes))
        co_return fail(errc::invalid_input, "a shard without its checksums");
    watchdog_.cancel();  // to make room may take longer than a chunk
    auto place = co_await into(bytes);
    if (!place) {
        place.error().code = errc::exhausted;
        co_return std::unexpected(std::move(place.error()));
    }
    std::size_t damaged = 0;  // all of them are read: the stream goes on behind them
    for (std::size_t i = 0; i < chunks->size(); ++i) {
        const auto chunk = chunk_of(place->first(bytes), i);
        watch(chunk_timeout);
        BANYAN_CO_TRY(const auto head, co_await channel_->read_head(64));
        if (head.first.type != static_cast<std::uint16_t>(peer_message::get_chunk) ||
            head.first.body_bytes != chunk.size())
            co_return fail(errc::invalid_input, "the peer broke a transfer off");
        std::uint32_t crc = 0;
        BANYAN_CO_CHECK(co_await channel_->read_body(chunk, &crc));
        if (crc != (*chunks)[i]) ++damaged;
    }
    if (damaged != 0) co_return fail(errc::conflict, fmt::format("{} chunks arrived damaged", damaged));
    co_return bytes;
}

task<result<std::uint64_t>> link::get(nlohmann::json meta, room into, std::vector<std::uint32_t>* chunks) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    BANYAN_CO_CHECK(co_await connect());
    auto out = co_await get_on(std::move(meta), std::move(into), chunks);
    watchdog_.cancel();
    const bool refused = !out && out.error().code == errc::conflict;
    if (!out && !refused) close();
    const bool answered = out || refused || out.error().code == errc::exhausted;
    note(answered);
    if (!answered) out.error().code = errc::unavailable;
    co_return out;
}

}  // namespace banyan::ckpt
