// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/job_watch.hpp"

#include <array>
#include <cerrno>
#include <cstring>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/text.hpp"
#include "common/timer.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {
namespace {

using kind = job_news::kind;

constexpr std::chrono::seconds listen_again(10);

catalog::symptom symptom_for(const job_news& news) {
    using enum catalog::symptom;
    switch (news.what) {
        case kind::task_ended:
            return may_be_hardware(news.status) ? job_crashed : job_failed;
        case kind::given_up:
            return job_given_up;
        case kind::copy_damaged:
            return copy_damaged;
        case kind::sent_damaged:
            return sent_damaged;
        case kind::stored_damaged:
            return stored_damaged;
    }
    return job_failed;
}

/// An error where another process has the socket, or that cannot be told.
result<void> nobody_listens(const sockaddr_un& at) {
    const unique_fd probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!probe) return fail_errno("cannot make a socket", errno);
    const bool taken = ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
    if (taken || errno == EPROTOTYPE)
        return fail(errc::conflict,
                    fmt::format("another process listens on {}: is a second agent running?", at.sun_path));
    if (errno == ECONNREFUSED || errno == ENOENT) return {};
    return fail_errno(fmt::format("cannot tell whether somebody listens on {}", at.sun_path), errno);
}

}  // namespace

kernel_fault fault_of(const job_news& news) {
    kernel_fault out;
    out.kind = fault_kind::symptom;
    out.code = static_cast<std::uint32_t>(symptom_for(news));
    const bool of_tasks = news.what == kind::task_ended || news.what == kind::given_up;
    out.device = of_tasks                            ? "training"
                 : news.what == kind::stored_damaged ? "checkpoint in storage"
                                                     : "checkpoint in memory";
    if (news.what == kind::task_ended) out.step = news.step;
    return out;
}

std::string words_of(const job_news& news) {
    const auto rank = [&] { return fmt::format("step {}.{}, rank {}", news.job, news.step, news.rank); };
    const auto more =
        news.more == 0 ? std::string() : fmt::format(" (and {} more that were not told)", news.more);
    switch (news.what) {
        case kind::task_ended:
            return fmt::format("{}: {}{}", rank(), end_in_words(news.status), more);
        case kind::given_up:
            return fmt::format("job {}: banyan-run says: {}", news.job, news.text);
        case kind::copy_damaged:
            return fmt::format("job {}, rank {}: its copy in this node's memory is damaged: {}{}", news.job,
                               news.rank, news.text, more);
        case kind::sent_damaged:
            return fmt::format("job {}, rank {}: its copy arrived damaged: {}{}", news.job, news.rank,
                               news.text, more);
        case kind::stored_damaged:
            return fmt::format("job {}, rank {}: its copy in storage is damaged: {}{}", news.job, news.rank,
                               news.text, more);
    }
    return {};
}

job_watch::job_watch(asio::io_context& io, const config& settings, sink to)
    : io_(io), config_(settings), sink_(std::move(to)), socket_(io) {}

// Another agent's may be there by now.
job_watch::~job_watch() {
    struct stat there {};
    if (socket_.is_open() && ::lstat(config_.agent_socket.c_str(), &there) == 0 &&
        there.st_dev == own_device_ && there.st_ino == own_inode_)
        ::unlink(config_.agent_socket.c_str());
}

void job_watch::start() {
    if (!config_.agent_socket.empty()) asio::co_spawn(io_, follow(), asio::detached);
}

result<void> job_watch::listen() {
    const auto& path = config_.agent_socket;
    sockaddr_un at{};
    if (path.size() >= sizeof at.sun_path)
        return fail(errc::invalid_input, fmt::format("the socket path {} is too long", path));
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, path.data(), path.size());
    struct stat there {};
    if (::lstat(path.c_str(), &there) == 0) {
        if (!S_ISSOCK(there.st_mode))
            return fail(errc::conflict, fmt::format("{} exists and is not a socket", path));
        BANYAN_CHECK(nobody_listens(at));
        ::unlink(path.c_str());  // an earlier agent's
    }
    unique_fd own(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!own) return fail_errno("cannot make a socket", errno);
    const int on = 1;
    if (::setsockopt(own.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        ::bind(own.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        return fail_errno(fmt::format("cannot listen on {}", path), errno);
    // Nobody else can fill its queue. Who came before this is told apart by what the kernel says of him.
    if (::chmod(path.c_str(), 0600) != 0) return fail_errno(fmt::format("cannot close {}", path), errno);
    if (::lstat(path.c_str(), &there) != 0) return fail_errno(fmt::format("cannot look at {}", path), errno);
    own_device_ = there.st_dev;
    own_inode_ = there.st_ino;
    boost::system::error_code ec;
    socket_.assign(own.get(), ec);
    if (ec) return fail(errc::unavailable, ec.message());
    (void)own.release();
    return {};
}

task<void> job_watch::follow() {
    timer again(io_);
    for (;;) {
        auto done = listen();
        if (done) done = co_await read_all();
        if (!done) complain("socket", fmt::format("what befalls jobs is not heard: {}", done.error().text()));
        boost::system::error_code ignored;
        socket_.close(ignored);
        again.expires_after(listen_again);
        co_await again.async_wait(as_result);
    }
}

task<result<void>> job_watch::read_all() {
    std::array<char, longest_job_news> data;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> about;
    for (;;) {
        if (auto [ec] = co_await socket_.async_wait(asio::posix::stream_descriptor::wait_read, as_result); ec)
            co_return fail(errc::unavailable, ec.message());
        iovec into{data.data(), data.size()};
        msghdr message{};
        message.msg_iov = &into;
        message.msg_iovlen = 1;
        message.msg_control = about.data();
        message.msg_controllen = about.size();
        const auto got = ::recvmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got < 0) co_return fail_errno("cannot read the agent's socket", errno);
        ucred sender{0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
        for (auto* c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
            if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS)
                std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
        if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
            take({data.data(), static_cast<std::size_t>(got)}, sender.uid, clock::wall_ms());
    }
}

void job_watch::take(std::string_view datagram, uid_t sender, std::int64_t now_ms) {
    // An agent that does not run as root hears its own user alone.
    if (sender != 0 && sender != ::geteuid())
        return complain("sender", fmt::format("uid {} may not", sender));
    const auto news = job_news_from(datagram);
    if (!news) return complain("datagram", news.error().text());
    std::uint64_t held = 0;
    if (!may_pass(*news, now_ms, held)) return;
    auto told = *news;
    told.more += held;
    sink_(fault_of(told), words_of(told), told.job);
}

// Each kind for itself: a job whose tasks fail again and again hides neither that a copy is damaged nor that
// it was given up.
bool job_watch::may_pass(const job_news& news, std::int64_t now_ms, std::uint64_t& held) {
    constexpr std::int64_t minute = 60'000;
    const auto of = std::pair(news.job, news.what);
    if (tallies_.size() >= most_tallies && !tallies_.contains(of))
        std::erase_if(tallies_, [&](const auto& t) { return now_ms - t.second.minute_ms >= minute; });
    if (tallies_.size() >= most_tallies && !tallies_.contains(of)) return false;
    auto& t = tallies_[of];
    if (now_ms - t.minute_ms >= minute || now_ms < t.minute_ms) {
        t.minute_ms = now_ms;
        t.passed = 0;
    }
    if (t.passed >= most_a_minute) {
        t.held += 1 + news.more;
        return false;
    }
    ++t.passed;
    held = std::exchange(t.held, 0);
    return true;
}

void job_watch::complain(const std::string& about, const std::string& text) {
    std::uint64_t held = 0;
    if (quiet_.pass(about, clock::now(), held))
        spdlog::warn("{}: {} ({} more held back)", config_.agent_socket, text, held);
}

}  // namespace banyan::fault
