// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/helper.hpp"

#include <array>

#include <fcntl.h>
#include <fmt/format.h>

#include "common/fd.hpp"
#include "common/timer.hpp"

namespace banyan::fault {
namespace {

/// Ends waits on `on` at `until`; nothing is left of it when it goes, whatever comes first.
class waker {
  public:
    waker(asio::posix::stream_descriptor& on, helper::clock::time_point until)
        : timer_(on.get_executor(), until), on_(std::make_shared<asio::posix::stream_descriptor*>(&on)) {
        timer_.async_wait([on = on_](const boost::system::error_code& ec) {
            boost::system::error_code ignored;
            if (!ec && *on) (*on)->cancel(ignored);
        });
    }
    ~waker() { *on_ = nullptr; }
    waker(const waker&) = delete;
    waker& operator=(const waker&) = delete;

  private:
    timer timer_;
    std::shared_ptr<asio::posix::stream_descriptor*> on_;
};

}  // namespace

helper::helper(asio::io_context& io, child&& process, int from)
    : io_(io), process_(std::make_unique<child>(std::move(process))), from_(io, from) {}

result<std::unique_ptr<helper>> helper::start(asio::io_context& io, const std::vector<std::string>& words) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("cannot make a pipe", errno);
    unique_fd from(ends[0]), into(ends[1]);
    const unique_fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    child_setup setup;
    setup.in = nothing.get();
    setup.out = into.get();
    BANYAN_TRY(auto process, child::start(words, setup));
    return std::unique_ptr<helper>(new helper(io, std::move(process), from.release()));
}

helper::~helper() {
    kill();
    // One that the kernel holds would hold us, too: it is left to whoever adopts it.
    constexpr std::chrono::seconds a_moment(1);
    if (!process_->ends_by(clock::now() + a_moment)) (void)process_.release();
}

task<result<void>> helper::read_some(clock::time_point until) {
    std::array<char, 16'384> buffer;
    const waker wakes(from_, until);
    auto [ec, n] = co_await from_.async_read_some(asio::buffer(buffer), as_result);
    text_.append(buffer.data(), n);
    if (ec == asio::error::eof) co_return fail(errc::not_found, "it closed its output");
    if (ec || clock::now() >= until) co_return fail(errc::unavailable, "no answer in time");
    if (text_.size() > most_kept)
        co_return fail(errc::exhausted, fmt::format("the answer is larger than {} bytes", most_kept));
    co_return result<void>{};
}

task<result<std::string>> helper::line(clock::time_point until) {
    for (auto from = std::size_t{0};;) {
        if (const auto end = text_.find('\n', from); end != std::string::npos) {
            auto out = text_.substr(0, end);
            text_.erase(0, end + 1);
            co_return out;
        }
        from = text_.size();
        BANYAN_CO_CHECK(co_await read_some(until));
    }
}

task<result<std::string>> helper::all(clock::time_point until) {
    for (;;) {
        const auto more = co_await read_some(until);
        if (!more && more.error().code == errc::not_found) co_return std::move(text_);
        BANYAN_CO_CHECK(more);
    }
}

task<bool> helper::ends_by(clock::time_point until) {
    if (ended()) co_return true;
    const int copy = ::fcntl(process_->end_fd(), F_DUPFD_CLOEXEC, 3);
    if (copy < 0) co_return false;
    asio::posix::stream_descriptor end(io_, copy);
    const waker wakes(end, until);
    co_await end.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
    co_return ended();
}

}  // namespace banyan::fault
