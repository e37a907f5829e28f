// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/reach.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <memory>
#include <random>

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

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
using address = std::unique_ptr<addrinfo, address_deleter>;

reach outcome(int error) {
    if (error == 0) return reach::open;
    return error == ECONNREFUSED ? reach::closed : reach::silent;
}

// The ports from which daemons that run as root call each other; they log every other caller.
constexpr std::uint16_t lowest_port = 665, highest_port = 1023;
constexpr int most_tries = 32;  // then from any port

std::uint16_t random_port() {
    static std::minstd_rand dice{std::random_device{}()};
    return static_cast<std::uint16_t>(lowest_port + dice() % (highest_port - lowest_port + 1));
}

/// A socket for `to`, bound to `port` unless that is 0.
unique_fd open_from(const addrinfo& to, std::uint16_t port) {
    unique_fd out(::socket(to.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!out || port == 0) return out;
    const int yes = 1;
    ::setsockopt(out.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    sockaddr_storage from{};
    from.ss_family = static_cast<sa_family_t>(to.ai_family);
    // The port stands at the same place in both kinds of address.
    reinterpret_cast<sockaddr_in&>(from).sin_port = htons(port);
    if (::bind(out.get(), reinterpret_cast<sockaddr*>(&from), to.ai_addrlen) != 0) out.reset();
    return out;
}

/// A connection on its way, from a port that root alone can take where we are root and one is free; or errno.
std::expected<unique_fd, int> call(const addrinfo& to) {
    for (int i = ::geteuid() == 0 ? 0 : most_tries; i <= most_tries; ++i) {
        auto socket = open_from(to, i < most_tries ? random_port() : 0);
        if (!socket) continue;
        if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return std::unexpected(0);
        if (errno == EINPROGRESS) return socket;
        // A port whose last connection to that host has just ended.
        if (errno != EADDRNOTAVAIL && errno != EADDRINUSE) break;
    }
    return std::unexpected(errno);
}

/// Looks all names up at once. `out` has what failed; the others' addresses, null where there is none.
std::vector<address> resolve(const std::vector<target>& targets, std::vector<reach>& out,
                             clock::time_point until) {
    // What a look-up that does not end writes to: it is abandoned with it.
    struct query {
        addrinfo hints{};
        std::string port;
        gaicb request{};
    };
    auto* const queries = new std::vector<query>(targets.size());
    std::vector<address> found(targets.size());
    std::vector<gaicb*> all;
    std::vector<std::size_t> index;  // of the target that each is for
    for (std::size_t i = 0; i < targets.size(); ++i) {
        auto& q = (*queries)[i];
        q.hints.ai_socktype = SOCK_STREAM;
        q.port = std::to_string(targets[i].port);
        q.request.ar_name = ::strdup(targets[i].address.c_str());
        q.request.ar_service = q.port.c_str();
        q.request.ar_request = &q.hints;
        // An address does not wait behind names.
        addrinfo numeric = q.hints, *at = nullptr;
        numeric.ai_flags = AI_NUMERICHOST;
        if (::getaddrinfo(q.request.ar_name, q.request.ar_service, &numeric, &at) == 0)
            found[i].reset(at);
        else
            all.push_back(&q.request), index.push_back(i);
    }
    bool all_ended = true;
    if (!all.empty() && ::getaddrinfo_a(GAI_NOWAIT, all.data(), static_cast<int>(all.size()), nullptr) != 0)
        return found;
    for (std::size_t i = 0; i < all.size(); ++i) {
        int status;
        while ((status = ::gai_error(all[i])) == EAI_INPROGRESS) {
            const auto left =
                std::chrono::duration_cast<std::chrono::nanoseconds>(until - clock::now()).count();
            if (left <= 0) break;
            const timespec wait{left / 1'000'000'000, left % 1'000'000'000};
            ::gai_suspend(&all[i], 1, &wait);
        }
        if (status == 0)
            found[index[i]].reset(all[i]->ar_result);
        else if (status == EAI_INPROGRESS)
            all_ended = ::gai_cancel(all[i]) == EAI_CANCELED && all_ended;
        else
            out[index[i]] = reach::unresolved;
    }
    if (all_ended) {
        for (auto& q : *queries) std::free(const_cast<char*>(q.request.ar_name));
        delete queries;
    }
    return found;
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

std::vector<reach> try_ports(const std::vector<target>& targets, std::chrono::milliseconds timeout,
                             std::chrono::milliseconds whole) {
    const auto until = clock::now() + whole;
    std::vector<reach> out(targets.size(), reach::untried);
    // Half of the time at most, so that those who have an address are tried.
    const auto addresses = resolve(targets, out, clock::now() + whole / 2);
    std::vector<attempt> running;
    for (std::size_t i = 0; i < targets.size(); ++i) {
        if (addresses[i] && clock::now() < until) {
            out[i] = reach::silent;
            auto socket = call(*addresses[i]);
            if (socket)
                running.push_back({i, std::move(*socket)});
            else
                out[i] = outcome(socket.error());
        }
        if (running.size() == at_once || i + 1 == targets.size())
            settle(running, out, std::min(until, clock::now() + timeout));
    }
    return out;
}

}  // namespace banyan::doctor
