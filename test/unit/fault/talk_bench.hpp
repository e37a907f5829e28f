// SPDX-License-Identifier: BSD-3-Clause
//
// A controller that agents can reach: over TCP, with a munged of its own.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include "test/unit/fault/controller_bench.hpp"
#include "test/unit/fault/munge_daemon.hpp"

namespace banyan::fault::testing {

/// Free a moment ago.
inline std::uint16_t a_free_port() {
    const unique_fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&at), size) == 0);
    REQUIRE(::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size) == 0);
    return ntohs(at.sin_port);
}

class talk_bench : public controller_bench {
  public:
    munge_daemon munged{dir};

    /// With a real agent held time passes no faster than the kernel's, by which the programs go that it
    /// starts.
    explicit talk_bench(bool real_agent = false)
        : controller_bench(std::chrono::milliseconds(real_agent ? 5 : 1)) {
        settings.munge_socket = munged.socket();
        settings.port = a_free_port();
        settings.sweep_timeout = std::chrono::seconds(30);
        settings.sweep_on_its_way = std::chrono::seconds(20);
    }
    /// Of a real agent of n03, which looks at nothing but its log.
    config agent_settings() const {
        auto own = load_config({}, "n03").value();
        own.munge_socket = munged.socket();
        own.controller = "127.0.0.1";
        own.port = settings.port;
        own.root = (dir / "root").string();
        own.kmsg = (dir / "kmsg").string();
        own.kmsg_trust_word = "injected";
        own.ckptd_socket = (dir / "no-ckptd").string();
        own.hca_events = false;
        own.look_program = "/bin/false";
        return own;
    }
    bool was_called(const std::string& what) {
        const std::lock_guard hold(slurm.lock);
        return std::ranges::find(slurm.calls, what) != slurm.calls.end();
    }
};

}  // namespace banyan::fault::testing
