// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/clock.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <sys/timex.h>

namespace banyan::sweep {
namespace {

double ms(std::chrono::microseconds t) { return static_cast<double>(t.count()) / 1000; }

}  // namespace

finding judge_clock(const clock_view& v, std::chrono::milliseconds limit) {
    if (!v.synchronised)
        return unfit(
            "the clock is not synchronised: the kernel has not been told so by ntpd, chronyd or another");
    auto out = v.estimated_error > limit
                   ? unfit(fmt::format("the clock's estimated error is {} ms, at most {} ms expected",
                                       ms(v.estimated_error), limit.count()))
                   : fit(fmt::format("synchronised, estimated error {} ms, {} ms at most",
                                     ms(v.estimated_error), ms(v.greatest_error)));
    out.figures["clock_estimated_error_seconds"] = ms(v.estimated_error) / 1000;
    return out;
}

result<clock_view> look_at_clock() {
    timex t{};
    if (::adjtimex(&t) < 0) return fail_errno("cannot ask the kernel about its clock", errno);
    // Both errors are in us, with STA_NANO too.
    return clock_view{(t.status & STA_UNSYNC) == 0, std::chrono::microseconds(t.esterror),
                      std::chrono::microseconds(t.maxerror)};
}

}  // namespace banyan::sweep
