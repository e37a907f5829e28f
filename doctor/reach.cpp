// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/reach.hpp"

#include <algorithm>
#include <cerrno>
#include <expected>
#include <memory>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include "common/fd.hpp"

namespace banyan::doctor {
namespace {

using clock = std::chrono::steady_clock;
// Fewer than a process may usually open.
constexpr std::size_t at_once = 256;

struct attempt {
    std::size_t target = 0;
    unique_fd socket;
};

struct address_deleter {
    void operator()(addrinfo* a) const { ::freeaddrinfo(a); }
};

reach outcome(int error) {
    if (error == 0) return reach::open;
    return error == ECONNREFUSED ? reach::closed : reach::silent;
}

/// Begins a connection to the first address; the answer where that is known at once.
std::expected<attempt, reach> begin(const target& to, std::size_t index) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (::getaddrinfo(to.address.c_str(), std::to_string(to.port).c_str(), &hints, &found) != 0)
        return std::unexpected(reach::unresolved);
    const std::unique_ptr<addrinfo, address_deleter> owned(found);
    unique_fd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket) return std::unexpected(reach::silent);
    if (::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0) return std::unexpected(reach::open);
    if (errno != EINPROGRESS) return std::unexpected(outcome(errno));
    return attempt{index, std::move(socket)};
}

void settle(std::vector<attempt>& running, std::vector<reach>& out, clock::time_point until) {
    while (!running.empty()) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now()).count();
        if (left <= 0) break;
        std::vector<pollfd> fds;
        for (const auto& a : running) fds.push_back({a.socket.get(), POLLOUT, 0});
        if (::poll(fds.data(), fds.size(), static_cast<int>(left)) < 0 && errno != EINTR) break;
        for (std::size_t i = fds.size(); i-- > 0;) {
            if (!fds[i].revents) continue;
            int error = 0;
            socklen_t size = sizeof error;
            ::getsockopt(fds[i].fd, SOL_SOCKET, SO_ERROR, &error, &size);
            out[running[i].target] = outcome(error);
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }
    running.clear();  // what is left stays silent
}

}  // namespace

std::vector<reach> try_ports(const std::vector<target>& targets, std::chrono::milliseconds patience) {
    std::vector<reach> out(targets.size(), reach::silent);
    std::vector<attempt> running;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        auto started = begin(targets[i], i);
        if (started)
            running.push_back(std::move(*started));
        else
            out[i] = started.error();
        if (running.size() == at_once || i + 1 == targets.size())
            settle(running, out, clock::now() + patience);
    }
    return out;
}

}  // namespace banyan::doctor
