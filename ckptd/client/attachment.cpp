// SPDX-License-Identifier: BSD-3-Clause
//
#include "ckptd/client/attachment.hpp"

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/client/words.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::chrono::seconds retry_every{10};
constexpr std::chrono::seconds comeback_timeout{5};  // of a daemon that its keeper starts again
constexpr std::chrono::milliseconds comeback_pause{10};

int code_of(const error& e) {
    switch (e.code) {
        case errc::exhausted:
            return BCK_E_MEMORY;
        case errc::not_found:
            return BCK_E_NODAEMON;
        default:
            return BCK_E_REFUSED;
    }
}

}  // namespace

attachment::attachment(const rank_name& who) : who_(who), off_code_(BCK_E_NODAEMON) {}

void attachment::begin(std::string socket) {
    detach();
    next_try_ = {};
    off_code_ = BCK_E_NODAEMON;
    socket_ = std::move(socket);
}

void attachment::begin_as(const attachment& other) {
    socket_ = other.socket_;
    off_because_ = other.off_because_;
    off_code_ = BCK_E_NODAEMON;
    next_try_ = {};
}

void attachment::pass_over() {
    const auto step = std::exchange(saving_, std::nullopt);
    if (step && link.attached()) link.post(message::skipped, "step", *step);
}

void attachment::detach() {
    copying.cancel();
    pinned_.clear();
    link.close();
}

// The daemon is missing or dead: training goes on, the user is told once. What other ranks lack the leader's
// daemon tells; what the prolog knew before is told already.
outcome attachment::off(const error& e) {
    static bool told = false;
    pass_over();
    detach();
    next_try_ = clock::now() + retry_every;
    off_code_ = BCK_E_NODAEMON;
    const auto known = environment("BANYAN_CKPT_OFF");
    off_because_ = known.empty() ? e.text() : known;
    auto& of_this_state = who_.state.empty() ? told : told_off_;
    if (who_.rank == 0 && known.empty() && !std::exchange(of_this_state, true))
        say(who_, fmt::format("checkpoints are off: {}", off_because_));
    return {BCK_E_NODAEMON, off_because_};
}

// Of one that is being started again nobody listens for a moment, or the socket is not there yet.
bool attachment::may_come(const error& e) const {
    if (!environment("BANYAN_CKPT_OFF").empty()) return false;
    if (e.code != errc::not_found) return e.code == errc::unavailable;
    return link.is_kept() || ::access((socket_ + ".lock").c_str(), F_OK) == 0;
}

result<void> attachment::connect(clock::time_point until) {
    for (;;) {
        auto opened = link.open(socket_);
        if (opened || !may_come(opened.error()) || clock::now() >= until) return opened;
        clock::sleep_for(comeback_pause);
    }
}

result<void> attachment::attach_anew(std::uint64_t bytes, bool populate) {
    const auto until = clock::now() + comeback_timeout;
    for (;;) {
        detach();
        BANYAN_CHECK(connect(until));
        auto back = attach(bytes, populate);
        // It may have ended once more meanwhile.
        if (back || back.error().code != errc::unavailable || clock::now() >= until) return back;
        clock::sleep_for(comeback_pause);
    }
}

// A daemon whose memory is kept is there again in a moment; what was saved is, too.
outcome attachment::come_back() {
    constexpr auto ended = "the checkpoint daemon has ended";
    if (!link.is_kept()) return off({errc::unavailable, ended, ""});
    const auto back = attach_anew(link.buffer_bytes(), true);
    if (back) return {};
    if (!link.is_open() || back.error().code == errc::unavailable)
        return off({errc::unavailable, ended, "its keeper did not start it again"});
    off(back.error());
    return {code_of(back.error()), off_because_};
}

outcome attachment::reach(bool asks) {
    if (link.attached()) return {};
    if (socket_.empty()) return {BCK_E_NODAEMON, off_because_};
    if (link.is_open()) return {};
    if (!asks && clock::now() < next_try_) return {off_code_, off_because_};
    const auto until = clock::now() + (asks ? comeback_timeout : comeback_timeout.zero());
    if (auto opened = connect(until); !opened) return off(opened.error());
    return {};
}

outcome attachment::attach_for(std::uint64_t bytes, bool populate) {
    if (link.attached() && bytes <= link.buffer_bytes()) return {};
    // A state may grow just after its daemon was started again.
    if (link.attached() && !link.alive()) {
        if (auto r = come_back(); r.code != 0) return r;
    }
    auto attached = attach(bytes, populate);
    // It has ended since this process connected to it.
    if (!attached && !link.alive()) attached = attach_anew(bytes, populate);
    if (!attached && attached.error().code == errc::exhausted && link.was_refused())
        return too_large(attached.error());
    if (!attached) {
        const bool is_there = link.is_open();
        auto out = off(attached.error());
        if (is_there) out.code = off_code_ = code_of(attached.error());
        return out;
    }
    return {};
}

// A smaller state is saved all the same. Attached it is for that, and to say that this one is skipped.
outcome attachment::too_large(const error& e) {
    hold_place();
    if (who_.rank == 0 && !std::exchange(told_too_large_, true))
        say(who_, fmt::format("this state has no memory: {}", e.text()));
    return {BCK_E_MEMORY, e.text()};
}

void attachment::hold_place() {
    if (link.attached() || !link.is_open()) return;
    if (const auto attached = attach(0, false); !attached) off(attached.error());
}

result<void> attachment::attach(std::uint64_t bytes, bool populate) {
    BANYAN_TRY(const auto warning, link.attach(who_, bytes, populate, [this] {
        copying.cancel();
        pinned_.clear();
    }));
    warnings_seen_ = link.header().warning_count.load();
    link.header().warnings_read.store(warnings_seen_);
    forget_beats(link.header().rank_beat);
    if (!warning.empty()) say(who_, warning);
    return {};
}

void attachment::pin(const region_table& table) {
    const auto* on_gpu = table.on_a_device();
    if (!on_gpu || !pinned_.empty()) return;
    for (std::uint32_t i = 0; i < link.buffers(); ++i)
        pinned_.emplace_back(link.buffer(i), link.buffer_bytes(), on_gpu);
}

void attachment::tell_warning() {
    auto& header = link.header();
    const auto count = header.warning_count.load();
    if (count == warnings_seen_) return;
    warnings_seen_ = count;
    std::array<char, 512> text = header.warning;
    text.back() = '\0';
    header.warnings_read.store(count);
    say(who_, text.data());
}

outcome attachment::ask(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                        nlohmann::json* reply, const std::function<void()>& meanwhile,
                        std::span<std::byte> into) {
    auto answer = link.call(type, meta, timeout, meanwhile, into);
    if (!answer && !link.alive()) {
        if (auto r = come_back(); r.code != 0) return r;
        answer = link.call(type, meta, timeout, meanwhile, into);
    }
    if (!answer && answer.error().code == errc::unavailable && link.alive()) {
        const auto in_vain = std::chrono::duration_cast<std::chrono::seconds>(timeout).count();
        auto out = off(
            {errc::unavailable, fmt::format("the checkpoint daemon has not answered for {} s", in_vain), ""});
        out.code = BCK_E_TIMEOUT;
        return out;
    }
    if (!answer) return off(answer.error());
    if (auto refused = wire::error_from(*answer)) return {code_of(*refused), refused->text()};
    *reply = std::move(*answer);
    return {};
}

}  // namespace banyan::ckpt
