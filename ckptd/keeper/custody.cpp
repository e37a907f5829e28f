// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/keeper/custody.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <sys/socket.h>

#include "common/text.hpp"

namespace banyan::ckpt::keeper {

std::shared_ptr<custody> custody::from_environment() {
    const char* text = std::getenv(socket_variable);
    const int fd = text ? static_cast<int>(parse_number(text, INT32_MAX).value_or(0)) : 0;
    const bool open = fd > STDERR_FILENO && ::fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
    auto out = std::make_shared<custody>(unique_fd(open ? fd : -1));
    if (const char* how = std::getenv(ended_variable)) out->ended_ = how;
    ::unsetenv(socket_variable);
    ::unsetenv(ended_variable);
    return out;
}

std::vector<handed_over> custody::take() {
    std::vector<handed_over> out;
    std::uint64_t newest = 0;
    while (is_kept()) {
        auto got = receive_record(socket_.get());
        if (got && got->what.type == record_type::all) say({record_type::taken, {}, 0}, -1);
        if (!got || got->what.type == record_type::all) break;
        if (got->what.type != record_type::kept) continue;
        newest = std::max(newest, got->what.number);
        if (got->fd) out.push_back({got->what.what, got->what.number, std::move(got->fd)});
    }
    next_ = newest + 1;
    return out;
}

void custody::say(const record& r, int fd) {
    if (!is_kept()) return;
    const std::scoped_lock held(lock_);
    say_waiting();
    if (waiting_.empty() && send_record(socket_.get(), r, fd, MSG_DONTWAIT)) return;
    // Without a keeper this daemon is about to end, too.
    if (waiting_.empty() && errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS) return;
    waiting_.push_back({r, unique_fd(fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 0))});
}

void custody::say_waiting() {
    while (!waiting_.empty()) {
        const auto& first = waiting_.front();
        if (!send_record(socket_.get(), first.what, first.fd.get(), MSG_DONTWAIT)) return;
        waiting_.pop_front();
    }
}

void custody::catch_up() {
    const std::scoped_lock held(lock_);
    say_waiting();
}

std::uint64_t custody::hold(contents what, int fd) {
    const auto number = next_.fetch_add(1);
    say({record_type::hold, what, number}, fd);
    return number;
}

void custody::drop(std::uint64_t number) { say({record_type::drop, {}, number}, -1); }

void custody::ready(bool detached) { say({record_type::ready, {}, detached ? 1u : 0u}, -1); }

}  // namespace banyan::ckpt::keeper
