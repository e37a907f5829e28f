// SPDX-License-Identifier: BSD-3-Clause
#include "test/held_run.hpp"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include <unistd.h>

#include "common/blocking_call.hpp"
#include "common/timer.hpp"
#include "test/scratch_path.hpp"

namespace banyan::testing {
namespace {

using namespace std::chrono_literals;
using kernel_time = std::chrono::steady_clock;

constexpr auto a_step = 5ms;          // of held time
constexpr auto only_if_broken = 60s;  // of the kernel's
constexpr auto longest_wait = 10min;  // of held time

std::shared_ptr<held_clock> the_clock() {
    static std::weak_ptr<held_clock> known;
    auto out = known.lock();
    const auto file = banyan::testing::scratch_path("held");
    if (!out) known = out = std::make_shared<held_clock>(file.string());
    return out;
}

}  // namespace

held_run::held_run(std::chrono::milliseconds on_its_way) : clock_(the_clock()), on_its_way_(on_its_way) {}

bool held_run::until(boost::asio::io_context& io, const std::function<bool()>& so) {
    return run(io, so, longest_wait);
}

void held_run::pass(boost::asio::io_context& io, clock::duration time) {
    run(
        io, [] { return false; }, time);
}

bool held_run::run(boost::asio::io_context& io, const std::function<bool()>& so, clock::duration most) {
    const auto last = clock::now() + most;
    const auto broken = kernel_time::now() + only_if_broken;
    for (;;) {
        // Read before `so` is asked: a call that ends in between is seen by `so`, or else holds the time.
        const bool waits = blocking_call::outstanding > 0;
        if (so()) return true;
        if (kernel_time::now() > broken) return false;
        if (run_one(io)) continue;
        if (const auto some = waits ? 1ms : on_its_way_; some > 0ms && io.run_one_for(some) > 0) continue;
        if (waits || blocking_call::outstanding > 0) continue;
        if (clock::now() >= last) return false;
        clock_->advance(std::min<clock::duration>(a_step, last - clock::now()));
    }
}

// The reactor sleeps by the kernel's time, and looks at its timers when it wakes or when one comes that is
// due before all others.
bool held_run::run_one(boost::asio::io_context& io) const {
    if (io.stopped()) io.restart();
    if (io.poll_one() > 0) return true;
    // A handler that stops `io` leaves the look behind, to be called off later.
    const auto looked = std::make_shared<bool>(false);
    timer look(io, clock::time_point());
    look.async_wait([looked](const boost::system::error_code&) { *looked = true; });
    std::size_t ran = 0;
    while (!*looked && !io.stopped()) ran += io.run_one();
    return ran > 1 || io.poll_one() > 0;
}

void gate::operator()() {
    std::unique_lock hold(lock_);
    if (!shut_) return;
    reached_ = true;
    ++waiting_;
    --blocking_call::outstanding;
    if (opened_.wait_for(hold, only_if_broken, [this] { return !shut_; })) return;  // open() counts it again
    --waiting_;
    ++blocking_call::outstanding;
}

void gate::shut() {
    const std::lock_guard hold(lock_);
    shut_ = true;
    reached_ = false;
}

void gate::open() {
    const std::lock_guard hold(lock_);
    shut_ = false;
    // At once, or time might pass before they have woken up.
    blocking_call::outstanding += std::exchange(waiting_, 0);
    opened_.notify_all();
}

bool gate::reached() {
    const std::lock_guard hold(lock_);
    return reached_;
}

}  // namespace banyan::testing
