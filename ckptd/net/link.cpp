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
constexpr std::chrono::milliseconds probe_again{500};
constexpr int max_rounds = 4;
// Of a part of a shard: what the ranks' next saves do not wait for any more, and when it is given up. A
// switch that fails over, or a retransmission, takes up to two seconds.
constexpr patience::bounds late_after{8, std::chrono::milliseconds(100), chunk_timeout};
constexpr patience::bounds given_up_after{32, std::chrono::seconds(2), chunk_timeout};

result<std::vector<std::uint32_t>> bad_chunks(const nlohmann::json& ended, std::uint64_t bytes) {
    BANYAN_TRY(auto out, json_fields(ended).numbers("bad", chunk_count(bytes)));
    for (const auto i : out)
        if (i >= chunk_count(bytes))
            return fail(errc::invalid_input, "the peer asks for a chunk that is not there");
    return out;
}

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
        silent_since_ = waits_since_.value_or(clock::now());
    waits_since_.reset();
}

clock::time_point link::late_at() const {
    const auto since = silent_since_ ? silent_since_ : waits_since_;
    return since ? *since + limit(late_after) : clock::time_point::max();
}

clock::duration link::limit(const patience::bounds& b) const {
    return memory_is_made_ ? b.longest : usual_[static_cast<std::size_t>(awaited_)].limit(b);
}

void link::await_part(part p, bool new_memory) {
    awaited_ = p;
    memory_is_made_ = new_memory;
    waits_since_ = clock::now();
    watch(limit(given_up_after));
}

void link::got_part() {
    if (!std::exchange(memory_is_made_, false)) usual(awaited_).note(clock::now() - *waits_since_);
    waits_since_.reset();
    silent_since_.reset();
}

// Closing the socket ends whatever waits on it.
void link::watch(clock::duration timeout) {
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
    // Whoever is there now may have to make memory anew.
    usual(part::place).forget();
    co_return result<void>{};
}

task<result<void>> link::send(peer_message type, nlohmann::json meta, std::span<const std::byte> body) {
    const auto named = meta.contains("state") ? of_named_state : std::uint16_t{0};
    const auto number = static_cast<std::uint16_t>(static_cast<std::uint16_t>(type) | named);
    return channel_->write_frame(number, std::move(meta), body);
}

task<result<nlohmann::json>> link::exchange(peer_message type, nlohmann::json meta,
                                            std::span<const std::byte> body) {
    BANYAN_CO_CHECK(co_await send(type, std::move(meta), body));
    BANYAN_CO_TRY(auto reply, co_await channel_->read_frame());
    co_return std::move(reply.meta);
}

task<result<nlohmann::json>> link::call(peer_message type, nlohmann::json meta,
                                        std::chrono::milliseconds timeout, std::span<const std::byte> body) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    const bool fresh = !channel_ || !channel_->is_open();
    BANYAN_CO_CHECK(co_await connect());
    watch(timeout);
    auto reply = co_await exchange(type, meta, body);
    if (!reply && !fresh && clock::now() < watchdog_.expiry()) {
        // An old connection may have ended with a daemon that was started again since.
        close();
        BANYAN_CO_CHECK(co_await connect());
        watch(timeout);
        reply = co_await exchange(type, std::move(meta), body);
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

task<result<void>> link::tell(peer_message type, nlohmann::json meta, std::chrono::milliseconds timeout,
                              std::span<const std::byte> body) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    // What is written to a peer that has gone leaves all the same.
    if (channel_ && channel_->is_open() && channel_->has_ended()) close();
    BANYAN_CO_CHECK(co_await connect());
    watch(timeout);
    auto sent = co_await send(type, std::move(meta), body);
    watchdog_.cancel();
    if (sent) co_return sent;
    note(false);
    close();
    co_return fail(errc::unavailable, fmt::format("{}: {}", options_.host, sent.error().text()));
}

task<result<link::put_result>> link::put_on(nlohmann::json meta, std::span<const std::byte> image,
                                            put_place place, std::function<bool()> wanted, put_count* sent) {
    await_part(part::place, place.new_memory);
    // A small one goes along with the question.
    const bool at_once = image.size() <= put_at_once && !place.new_memory && !place.was_busy;
    const auto body = at_once ? image : std::span<const std::byte>();
    BANYAN_CO_TRY(const auto begun, co_await exchange(peer_message::put_begin, std::move(meta), body));
    got_part();
    sent->bytes += body.size();
    if (auto refused = wire::error_from(begun)) {
        if (refused->code != errc::exhausted) refused->code = errc::conflict;
        co_return std::unexpected(std::move(*refused));
    }
    if (begun.contains("have")) co_return put_result::done;
    if (begun.contains("busy")) co_return put_result::busy;
    std::vector<std::uint32_t> missing(chunk_count(image.size()));
    for (std::uint32_t i = 0; i < missing.size(); ++i) missing[i] = i;
    if (at_once) {
        BANYAN_CO_TRY(missing, bad_chunks(begun, image.size()));
        sent->damaged += missing.size();
    }
    for (int round = 0; round < max_rounds && !missing.empty(); ++round) {
        bool all = true;  // were sent
        for (const auto i : missing) {
            if (!wanted()) {
                all = false;
                break;
            }
            const auto chunk =
                image.subspan(i * chunk_bytes, std::min(chunk_bytes, image.size() - i * chunk_bytes));
            nlohmann::json which;
            which["i"] = i;
            await_part(part::chunk);
            BANYAN_CO_CHECK(co_await channel_->write_frame(
                static_cast<std::uint16_t>(peer_message::put_chunk), std::move(which), chunk));
            got_part();
            sent->bytes += chunk.size();
        }
        await_part(part::check);
        nlohmann::json end = nlohmann::json::object();
        BANYAN_CO_TRY(const auto ended, co_await exchange(peer_message::put_end, std::move(end)));
        got_part();
        if (auto refused = wire::error_from(ended)) {
            refused->code = errc::conflict;
            co_return std::unexpected(std::move(*refused));
        }
        BANYAN_CO_TRY(missing, bad_chunks(ended, image.size()));
        if (all) sent->damaged += missing.size();
        if (!missing.empty() && !wanted()) co_return fail(errc::conflict, "overtaken by a newer step");
    }
    if (!missing.empty())
        co_return fail(errc::conflict,
                       fmt::format("{} chunks arrived damaged {} times", missing.size(), max_rounds));
    co_return put_result::done;
}

task<result<link::put_result>> link::put(nlohmann::json meta, std::span<const std::byte> image,
                                         put_place place, std::function<bool()> wanted, put_count* sent) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    awaited_ = part::place;
    memory_is_made_ = place.new_memory;
    waits_since_ = clock::now();
    auto connected = co_await connect();
    if (!connected) {
        waits_since_.reset();
        co_return std::unexpected(std::move(connected.error()));
    }
    auto out = co_await put_on(std::move(meta), image, place, std::move(wanted), sent);
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

task<void> link::probe(std::function<bool()> wanted) {
    if (std::exchange(probing_, true)) co_return;
    const auto self = shared_from_this();
    timer pause(executor_);
    while (is_silent() && wanted()) {
        auto nothing = nlohmann::json::object();
        const auto answer = co_await call(peer_message::ping, std::move(nothing), probe_timeout);
        // A refusal is an answer.
        if (!answer && answer.error().code != errc::unavailable) note(true);
        if (!is_silent()) break;
        pause.expires_after(probe_again);
        co_await pause.async_wait(as_result);
    }
    probing_ = false;
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
        BANYAN_CO_CHECK(co_await channel_->read_body(chunk, &crc, true));  // a rank may have it mapped
        if (crc != (*chunks)[i]) ++damaged;
    }
    if (damaged != 0) co_return fail(errc::conflict, fmt::format("{} chunks arrived damaged", damaged));
    co_return bytes;
}

task<result<std::uint64_t>> link::get(nlohmann::json meta, room into, std::vector<std::uint32_t>* chunks) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    std::optional<std::span<std::byte>> place;
    const room once = [&](std::uint64_t bytes) -> task<result<std::span<std::byte>>> {
        if (place && place->size() != bytes)
            co_return fail(errc::exhausted, "the shard's length has changed");
        if (!place) {
            BANYAN_CO_TRY(place, co_await into(bytes));
        }
        co_return *place;
    };
    // Where room takes longer to make than the peer's network waits, the connection is gone when it is there.
    // It serves a second try, or none would ever come further.
    for (bool again = false;; again = true) {
        BANYAN_CO_CHECK(co_await connect());
        auto out = co_await get_on(meta, once, chunks);
        watchdog_.cancel();
        const bool refused = !out && out.error().code == errc::conflict;
        if (!out && !refused) close();
        const bool answered = out || refused || out.error().code == errc::exhausted;
        note(answered);
        if (!answered && place && !again) continue;
        if (!answered) out.error().code = errc::unavailable;
        co_return out;
    }
}

task<result<void>> link::get_chunk_on(nlohmann::json meta, std::span<std::byte> into) {
    watch(chunk_timeout);
    BANYAN_CO_TRY(const auto reply, co_await exchange(peer_message::get, std::move(meta)));
    if (auto refused = wire::error_from(reply)) {
        refused->code = errc::conflict;
        co_return std::unexpected(std::move(*refused));
    }
    watch(chunk_timeout);
    BANYAN_CO_TRY(const auto head, co_await channel_->read_head(64));
    if (head.first.type != static_cast<std::uint16_t>(peer_message::get_chunk) ||
        head.first.body_bytes != into.size())
        co_return fail(errc::invalid_input, "the peer broke a transfer off");
    co_return co_await channel_->read_body(into);
}

task<result<void>> link::get_chunk(nlohmann::json meta, std::size_t chunk, std::span<std::byte> into) {
    const auto self = shared_from_this();
    const auto held = co_await lock_.acquire();
    const bool fresh = !channel_ || !channel_->is_open();
    meta["only"] = chunk;
    BANYAN_CO_CHECK(co_await connect());
    auto out = co_await get_chunk_on(meta, into);
    if (!out && out.error().code != errc::conflict && !fresh && clock::now() < watchdog_.expiry()) {
        // An old connection may have ended with a daemon that was started again since.
        close();
        BANYAN_CO_CHECK(co_await connect());
        out = co_await get_chunk_on(std::move(meta), into);
    }
    watchdog_.cancel();
    const bool answered = out || out.error().code == errc::conflict;
    note(answered);
    if (!answered) {
        close();
        out.error().code = errc::unavailable;
    }
    co_return out;
}

}  // namespace banyan::ckpt
