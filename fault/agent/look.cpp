// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/look.hpp"

#include <fmt/format.h>

#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::fault {

using clock = helper::clock;

namespace {

double in_seconds(clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

task<result<nlohmann::json>> look::ask() {
    if (running_ && !running_->ended())
        co_return fail(errc::unavailable, fmt::format("a look that began {:.0f} s ago hangs in the kernel",
                                                      in_seconds(clock::now() - begun_)));
    begun_ = clock::now();
    BANYAN_CO_TRY(running_, helper::start(io_, words_));
    auto text = co_await running_->all(begun_ + timeout_);
    if (!text) {
        running_->kill();
        if (text.error().code == errc::unavailable)
            text = fail(errc::unavailable, fmt::format("no answer within {:.3g} s", in_seconds(timeout_)));
    }
    constexpr std::chrono::seconds a_moment(1);
    if (co_await running_->ends_by(clock::now() + a_moment)) {
        const auto end = running_->end();
        running_.reset();
        if (text && end.code != 0)
            co_return fail(errc::unavailable, end.signal != 0
                                                  ? fmt::format("the look crashed with signal {}", end.signal)
                                                  : fmt::format("the look ended with code {}", end.code));
    } else {
        running_->kill();  // it may have closed its output, and goes on doing something
    }
    if (!text) co_return std::unexpected(text.error());
    auto told = nlohmann::json::parse(*text, nullptr, false);
    if (!told.is_object()) co_return fail(errc::internal, "the look did not print what it should");
    if (const auto why = json_fields(told).text("error")) co_return fail(errc::unavailable, printable(*why));
    co_return told;
}

}  // namespace banyan::fault
