// SPDX-License-Identifier: BSD-3-Clause
//
// The copy to the buddy: one stream on loopback with checksum and authentication, against plain TCP of as
// many bytes; what CPU time it takes on either side.
#include <algorithm>
#include <cerrno>
#include <csignal>

#include <arpa/inet.h>
#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "test/bench/ckpt_bench.hpp"
#include "test/bench/ckpt_fleet.hpp"
#include "test/bench/ckpt_rank.hpp"

namespace banyan::bench {
namespace {

constexpr std::size_t piece = 4u << 20;
constexpr int transfer_ms = 60'000;

/// A process that takes all that is sent, into warm memory, and answers with one byte whenever `bytes` are
/// there.
class plain_peer {
  public:
    explicit plain_peer(std::size_t bytes) : bytes_(bytes) {}
    ~plain_peer() {
        if (pid_ <= 0) return;
        ::kill(pid_, SIGKILL);
        ::waitpid(pid_, nullptr, 0);
    }
    plain_peer(const plain_peer&) = delete;
    plain_peer& operator=(const plain_peer&) = delete;

    result<void> start() {
        const unique_fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof a;
        auto* const address = reinterpret_cast<sockaddr*>(&a);
        if (::bind(listener.get(), address, size) != 0 || ::listen(listener.get(), 1) != 0 ||
            ::getsockname(listener.get(), address, &size) != 0)
            return fail_errno("cannot listen", errno);
        BANYAN_TRY(from_, warm_memory(bytes_));
        pid_ = ::fork();
        if (pid_ < 0) return fail_errno("cannot fork", errno);
        if (pid_ == 0) take(listener.get());
        socket_ = unique_fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        const timeval most{transfer_ms / 1000, 0};
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
        if (::connect(socket_.get(), address, size) != 0) return fail_errno("cannot connect", errno);
        return {};
    }

    result<double> send_all() {
        bool whole = true;
        char answer = 0;
        const auto seconds = seconds_of([&] {
            for (std::size_t at = 0; at < bytes_ && whole;) {
                const auto put =
                    ::send(socket_.get(), from_.data() + at, std::min(piece, bytes_ - at), MSG_NOSIGNAL);
                whole = put > 0;
                if (whole) at += static_cast<std::size_t>(put);
            }
            whole = whole && ::recv(socket_.get(), &answer, 1, 0) == 1;
        });
        if (!whole) return fail(errc::unavailable, "plain TCP on loopback broke off");
        return seconds;
    }

  private:
    [[noreturn]] void take(int listener) const {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const unique_fd socket(::accept(listener, nullptr, nullptr));
        const auto into = warm_memory(bytes_);
        for (std::size_t at = 0; into;) {
            const auto got = ::recv(socket.get(), into->data() + at, std::min(piece, bytes_ - at), 0);
            if (got <= 0) break;
            at += static_cast<std::size_t>(got);
            if (at < bytes_) continue;
            at = 0;
            if (::send(socket.get(), "", 1, MSG_NOSIGNAL) != 1) break;
        }
        ::_exit(0);
    }

    const std::size_t bytes_;
    mapping from_;
    pid_t pid_ = -1;
    unique_fd socket_;
};

}  // namespace

result<void> measure_copies(const ckpt_plan& plan, figures& out) {
    BANYAN_TRY(const auto f, fleet::start({.nodes = 2}));
    constexpr std::uint64_t both = 1, alone = 2;
    plain_peer plain(plan.large);
    BANYAN_CHECK(plain.start());
    auto pair = f->request(both, 2, 1, 0), single = f->request(alone, 1, 1, 0);
    pair.buffers = single.buffers = 2;
    BANYAN_CHECK(f->open(pair));
    BANYAN_CHECK(f->open(single));
    BANYAN_TRY(auto ranks, start_pair(*f, both, plan.large));
    BANYAN_TRY(auto lone, rank_process::start({f->socket(1), alone, 0, 1, plan.large}));
    std::vector<double> copies, sums, sends, cpu_from, cpu_to;
    for (std::uint64_t step = 1; step <= plan.runs + 2; ++step) {
        BANYAN_TRY(const auto sent, plain.send_all());
        // Without a buddy: checksum and commit alone.
        BANYAN_CHECK(lone.ask({deed::save, step}));
        BANYAN_TRY(const auto summed, lone.ask({deed::wait, step, BCK_MEMORY}));
        BANYAN_CHECK(ranks[1].ask({deed::save, step}));
        const auto from = f->cpu(1), to = f->cpu(2);
        BANYAN_CHECK(ranks[0].ask({deed::save, step}));
        BANYAN_TRY(const auto copied, ranks[0].ask({deed::wait, step, BCK_REPLICATED}));
        if (step <= 2) continue;  // room for the copies is made
        sends.push_back(sent);
        sums.push_back(summed.seconds);
        copies.push_back(copied.seconds);
        cpu_from.push_back(f->cpu(1) - from);
        cpu_to.push_back(f->cpu(2) - to);
    }
    const double gib = static_cast<double>(plan.large) / (1u << 30);
    const auto what = fmt::format("copy to the buddy, {}", size_text(plan.large));
    out.add(what, median(sends) / (median(copies) - median(sums)), "x", "plain TCP on loopback", ">=", 1.0);
    out.add(what + ", from the seal", median(sends) / median(copies), "x", "plain TCP on loopback");
    out.add("plain TCP on loopback", gib / median(sends), "GiB/s", "-");
    out.add(what + ", CPU of the sender per GiB", median(cpu_from) / gib, "s", "-", "<=", 0.3);
    out.add(what + ", CPU of the buddy per GiB", median(cpu_to) / gib, "s", "-", "<=", 0.3);
    return {};
}

}  // namespace banyan::bench
