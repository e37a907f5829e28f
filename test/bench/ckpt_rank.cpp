// SPDX-License-Identifier: BSD-3-Clause
#include "test/bench/ckpt_rank.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

namespace banyan::bench {
namespace {

constexpr int answer_ms = 60'000;
constexpr std::size_t little = 64 * 1024;

struct state {
    std::vector<unsigned char> bytes;
    mapping warm;
};

outcome_of carry_out(const order& o, state& s) {
    outcome_of out;
    const auto start = std::chrono::steady_clock::now();
    switch (o.what) {
        case deed::copy:
            std::memcpy(s.warm.data(), s.bytes.data(), s.bytes.size());
            break;
        case deed::save:
            out.code = bck_checkpoint(o.arg);
            break;
        case deed::wait:
            out.code = bck_wait(o.arg, o.level, 30'000);
            break;
        case deed::look:
            out.code = bck_restart_query(&out.step);
            break;
        case deed::restart:
            out.code = bck_restart(&out.step, &out.source);
            break;
        case deed::finalize:
            out.code = bck_finalize(1);
            break;
    }
    out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (out.code != BCK_OK) std::strncpy(out.text, bck_error(), sizeof out.text - 1);
    return out;
}

[[noreturn]] void live(const rank_process::options& o, int channel) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setenv("BANYAN_CKPT_SOCKET", o.socket.c_str(), 1);
    ::setenv("BANYAN_CKPT_WAIT_MS", std::to_string(o.wait_ms).c_str(), 1);
    state s{std::vector<unsigned char>(o.bytes, static_cast<unsigned char>(7 + o.rank)), {}};
    void* at =
        ::mmap(nullptr, o.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    outcome_of first;
    if (at == MAP_FAILED)
        first.code = BCK_E_MEMORY;
    else
        s.warm = mapping(at, o.bytes);
    if (first.code == BCK_OK)
        first.code =
            bck_init(std::to_string(o.job).c_str(), static_cast<int>(o.rank), static_cast<int>(o.world));
    const auto cut = [&](std::size_t i) {
        return i == o.regions ? o.bytes : i * (o.bytes / o.regions) + i * i % 97;
    };
    for (std::size_t i = 0; i < o.regions && first.code == BCK_OK; ++i)
        first.code = bck_protect_bytes(fmt::format("region.{}", i).c_str(), s.bytes.data() + cut(i),
                                       cut(i + 1) - cut(i));
    if (first.code != BCK_OK) std::strncpy(first.text, bck_error(), sizeof first.text - 1);
    if (::send(channel, &first, sizeof first, MSG_NOSIGNAL) != sizeof first) ::_exit(1);
    for (order next; ::recv(channel, &next, sizeof next, 0) == sizeof next;) {
        const auto done = carry_out(next, s);
        if (::send(channel, &done, sizeof done, MSG_NOSIGNAL) != sizeof done) break;
    }
    ::_exit(0);
}

}  // namespace

result<rank_process> rank_process::start(const options& o) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
        return fail_errno("cannot make a socket", errno);
    rank_process out;
    out.name_ = fmt::format("rank {} of job {}", o.rank, o.job);
    out.channel_ = unique_fd(ends[0]);
    const unique_fd theirs(ends[1]);
    out.pid_ = ::fork();
    if (out.pid_ < 0) return fail_errno("cannot fork", errno);
    if (out.pid_ == 0) live(o, theirs.get());
    BANYAN_TRY(const auto first, out.hear());
    if (first.code != BCK_OK)
        return fail(errc::unavailable, fmt::format("{}: {} ({})", out.name_, first.text, first.code));
    return out;
}

rank_process::rank_process(rank_process&& o) noexcept
    : pid_(std::exchange(o.pid_, -1)), channel_(std::move(o.channel_)), name_(std::move(o.name_)) {}

rank_process::~rank_process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
}

result<void> rank_process::say(const order& o) {
    if (::send(channel_.get(), &o, sizeof o, MSG_NOSIGNAL) == sizeof o) return {};
    return fail(errc::unavailable, name_ + " has ended");
}

result<outcome_of> rank_process::hear() {
    outcome_of out;
    pollfd p{channel_.get(), POLLIN, 0};
    if (::poll(&p, 1, answer_ms) <= 0)
        return fail(errc::unavailable, fmt::format("{} does not answer in {} s", name_, answer_ms / 1000));
    if (::recv(channel_.get(), &out, sizeof out, 0) == sizeof out) return out;
    return fail(errc::unavailable, name_ + " has ended");
}

result<outcome_of> rank_process::ask(const order& o, int wanted) {
    BANYAN_CHECK(say(o));
    BANYAN_TRY(const auto out, hear());
    if (out.code == wanted) return out;
    return fail(errc::unavailable, fmt::format("{}: {} ({})", name_, out.text, out.code));
}

result<std::vector<rank_process>> start_pair(const fleet& f, std::uint64_t job, std::size_t bytes) {
    std::vector<rank_process> ranks;
    BANYAN_TRY(auto first, rank_process::start({f.socket(1), job, 0, 2, bytes}));
    ranks.push_back(std::move(first));
    BANYAN_TRY(auto second, rank_process::start({f.socket(2), job, 1, 2, little}));
    ranks.push_back(std::move(second));
    return ranks;
}

result<void> look_all(std::vector<rank_process>& ranks) {
    for (auto& r : ranks) BANYAN_CHECK(r.say({deed::look}));
    for (auto& r : ranks) {
        BANYAN_TRY(const auto found, r.hear());
        if (found.code != BCK_E_NOTFOUND)
            return fail(errc::unavailable, fmt::format("a first look: {} ({})", found.text, found.code));
    }
    return {};
}

result<double> slowest(std::vector<rank_process>& ranks, const order& o) {
    double most = 0;
    result<void> whole;
    for (auto& r : ranks) BANYAN_CHECK(r.say(o));
    for (auto& r : ranks) {
        BANYAN_TRY(const auto one, r.hear());
        most = std::max(most, one.seconds);
        if (one.code != BCK_OK && whole)
            whole = fail(errc::unavailable, fmt::format("{} ({})", one.text, one.code));
    }
    if (!whole) return std::unexpected(whole.error());
    return most;
}

}  // namespace banyan::bench
