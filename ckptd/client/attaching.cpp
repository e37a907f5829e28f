// SPDX-License-Identifier: BSD-3-Clause
//
// The way to the daemon: connecting, its memory, its answers, and the next one where it has ended.
#include <thread>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/client/client.hpp"
#include "ckptd/client/device.hpp"
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

void client::detach() {
    if (pinned_ && connection_.attached()) device::unpin(connection_.base(), connection_.mapped_bytes());
    pinned_ = false;
    connection_.close();
}

// The daemon is missing or dead: training goes on, the user is told once. What other ranks lack the leader's
// daemon tells; what the prolog knew before is told already.
outcome client::off(const error& e) {
    static bool told = false;
    pass_over();
    detach();
    next_try_ = clock::now() + retry_every;
    const auto known = environment("BANYAN_CKPT_OFF");
    off_because_ = known.empty() ? e.text() : known;
    auto& of_this_state = who_.state.empty() ? told : told_off_;
    if (who_.rank == 0 && known.empty() && !std::exchange(of_this_state, true))
        say(who_, fmt::format("checkpoints are off: {}", off_because_));
    return {BCK_E_NODAEMON, off_because_};
}

// Of one that is being started again nobody listens for a moment, or the socket is not there yet.
bool client::may_come(const error& e) const {
    if (!environment("BANYAN_CKPT_OFF").empty()) return false;
    if (e.code != errc::not_found) return e.code == errc::unavailable;
    return connection_.is_kept() || ::access((socket_ + ".lock").c_str(), F_OK) == 0;
}

result<void> client::connect(clock::time_point until) {
    for (;;) {
        auto opened = connection_.open(socket_);
        if (opened || !may_come(opened.error()) || clock::now() >= until) return opened;
        std::this_thread::sleep_for(comeback_pause);
    }
}

result<void> client::attach_anew(std::uint64_t bytes, bool populate) {
    const auto until = clock::now() + comeback_timeout;
    for (;;) {
        detach();
        BANYAN_CHECK(connect(until));
        auto back = attach(bytes, populate);
        // It may have ended once more meanwhile.
        if (back || back.error().code != errc::unavailable || clock::now() >= until) return back;
        std::this_thread::sleep_for(comeback_pause);
    }
}

// A daemon whose memory is kept is there again in a moment; what was saved is, too.
outcome client::come_back() {
    constexpr auto ended = "the checkpoint daemon has ended";
    if (!connection_.is_kept()) return off({errc::unavailable, ended, ""});
    const auto back = attach_anew(connection_.buffer_bytes(), true);
    if (back) return {};
    if (!connection_.is_open() || back.error().code == errc::unavailable)
        return off({errc::unavailable, ended, "its keeper did not start it again"});
    off(back.error());
    return {code_of(back.error()), off_because_};
}

outcome client::reach(bool asks) {
    if (auto r = usable(); r.code != 0) return r;
    if (connection_.attached()) return {};
    if (socket_.empty()) return {BCK_E_NODAEMON, off_because_};
    if (connection_.is_open()) return {};
    if (!asks && clock::now() < next_try_) return {BCK_E_NODAEMON, off_because_};
    const auto until = clock::now() + (asks ? comeback_timeout : comeback_timeout.zero());
    if (auto opened = connect(until); !opened) return off(opened.error());
    return {};
}

outcome client::attach_for(std::uint64_t bytes, bool populate) {
    if (connection_.attached() && bytes <= connection_.buffer_bytes()) return {};
    // A state may grow just after its daemon was started again.
    if (connection_.attached() && !connection_.alive()) {
        if (auto r = come_back(); r.code != 0) return r;
    }
    if (pinned_) device::unpin(connection_.base(), connection_.mapped_bytes());
    pinned_ = false;
    auto attached = attach(bytes, populate);
    // It has ended since this process connected to it.
    if (!attached && !connection_.alive()) attached = attach_anew(bytes, populate);
    if (!attached) {
        const bool is_there = connection_.is_open();
        auto out = off(attached.error());
        if (is_there) out.code = code_of(attached.error());
        return out;
    }
    return {};
}

result<void> client::attach(std::uint64_t bytes, bool populate) {
    BANYAN_TRY(const auto warning, connection_.attach(who_, bytes, populate));
    warnings_seen_ = connection_.header().warning_count.load();
    connection_.header().warnings_read.store(warnings_seen_);
    if (!warning.empty()) say(who_, warning);
    return {};
}

void client::pin(const region_table& table) {
    const auto* on_gpu = table.on_a_device();
    if (!on_gpu || pinned_) return;
    device::pin(connection_.base(), connection_.mapped_bytes(), on_gpu);
    pinned_ = true;
}

outcome client::ready(const given_regions& given, region_table** table, bool asks) {
    *table = &regions_;
    if (given && !given->data() && !given->empty()) return {BCK_E_INVALID, "tensors is NULL"};
    if (!given && usable().code == 0 && regions_.empty()) return {BCK_E_INVALID, "no region is protected"};
    if (auto r = reach(asks); r.code != 0) return r;
    if (given)
        if (auto r = given_.find(*given, regions_, table); r.code != 0) return r;
    if (auto made = (*table)->make_header(who_.job, who_.rank, who_.world); !made)
        return {BCK_E_INVALID, made.error().text()};
    if (auto r = attach_for((*table)->header().image_bytes, !asks); r.code != 0) return r;
    if (!asks) pin(**table);
    return {};
}

void client::tell_warning() {
    auto& header = connection_.header();
    const auto count = header.warning_count.load();
    if (count == warnings_seen_) return;
    warnings_seen_ = count;
    std::array<char, 512> text = header.warning;
    text.back() = '\0';
    header.warnings_read.store(count);
    say(who_, text.data());
}

outcome client::ask(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                    nlohmann::json* reply, const std::function<void()>& meanwhile) {
    auto answer = connection_.call(type, meta, timeout, meanwhile);
    if (!answer && !connection_.alive()) {
        if (auto r = come_back(); r.code != 0) return r;
        answer = connection_.call(type, meta, timeout, meanwhile);
    }
    if (!answer && answer.error().code == errc::unavailable && connection_.alive()) {
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
