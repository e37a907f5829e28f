// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/look.hpp"

#include <array>
#include <csignal>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/fd.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::fault {

using std::chrono::steady_clock;

namespace {

/// Ends waits on `on` at `until`; gone with the object, whatever comes first.
class waker {
  public:
    waker(asio::posix::stream_descriptor& on, steady_clock::time_point until)
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
    asio::steady_timer timer_;
    std::shared_ptr<asio::posix::stream_descriptor*> on_;
};

}  // namespace

look::look(asio::io_context& io, std::vector<std::string> words, std::chrono::milliseconds timeout)
    : io_(io), words_(std::move(words)), timeout_(timeout) {}

look::~look() {
    if (!running_) return;
    running_->send(SIGKILL);
    // One that the kernel holds would hold us, too: it is left to whoever adopts it.
    if (!running_->ends_by(steady_clock::now() + std::chrono::seconds(1))) (void)running_.release();
}

task<bool> look::ends_by(steady_clock::time_point until) {
    const int copy = ::fcntl(running_->end_fd(), F_DUPFD_CLOEXEC, 3);
    if (copy < 0) co_return running_->ends_by(steady_clock::now());
    asio::posix::stream_descriptor end(io_, copy);
    const waker wakes(end, until);
    co_await end.async_wait(asio::posix::stream_descriptor::wait_read, as_result);
    co_return running_->ends_by(steady_clock::now());
}

task<result<std::string>> look::read_all(int from, steady_clock::time_point until) {
    asio::posix::stream_descriptor in(io_, from);
    const waker wakes(in, until);
    std::string text;
    std::array<char, 16'384> buffer;
    for (;;) {
        auto [ec, n] = co_await in.async_read_some(asio::buffer(buffer), as_result);
        text.append(buffer.data(), n);
        if (ec == asio::error::eof) co_return text;
        if (ec || steady_clock::now() >= until)
            co_return fail(errc::unavailable, fmt::format("no answer within {:.3g} s",
                                                          std::chrono::duration<double>(timeout_).count()));
        if (text.size() > longest_answer)
            co_return fail(errc::exhausted,
                           fmt::format("the answer is larger than {} bytes", longest_answer));
    }
}

task<result<nlohmann::json>> look::ask() {
    if (running_) {
        if (!running_->ends_by(steady_clock::now()))
            co_return fail(errc::unavailable,
                           fmt::format("a look that began {:.0f} s ago hangs in the kernel",
                                       std::chrono::duration<double>(steady_clock::now() - begun_).count()));
        running_.reset();
    }
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) co_return fail_errno("cannot make a pipe", errno);
    unique_fd from(ends[0]), into(ends[1]);
    const unique_fd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    begun_ = steady_clock::now();
    child_setup setup;
    setup.in = nothing.get();
    setup.out = into.get();
    BANYAN_CO_TRY(auto started, child::start(words_, setup));
    into.reset();
    running_ = std::make_unique<child>(std::move(started));
    const auto text = co_await read_all(from.release(), begun_ + timeout_);
    if (!text) running_->send(SIGKILL);
    constexpr std::chrono::seconds a_moment(1);
    if (co_await ends_by(steady_clock::now() + a_moment)) {
        const auto end = running_->wait();
        running_.reset();
        if (text && end.code != 0)
            co_return fail(errc::unavailable, end.signal != 0
                                                  ? fmt::format("the look crashed with signal {}", end.signal)
                                                  : fmt::format("the look ended with code {}", end.code));
    } else if (text) {
        running_->send(SIGKILL);  // it has closed its output, and goes on doing something
    }
    if (!text) co_return std::unexpected(text.error());
    auto told = nlohmann::json::parse(*text, nullptr, false);
    if (!told.is_object()) co_return fail(errc::internal, "the look did not print what it should");
    if (const auto why = json_fields(told).text("error")) co_return fail(errc::unavailable, printable(*why));
    co_return told;
}

}  // namespace banyan::fault
