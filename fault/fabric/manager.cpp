// SPDX-License-Identifier: BSD-3-Clause
#include "fault/fabric/manager.hpp"

#include <utility>

#include <fmt/format.h>

#include "common/text.hpp"
#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;

constexpr std::size_t most_words = 200;

// The line of the answer, wherever it stands: a wrapper may print something before it.
std::optional<manager_look> answer_in(std::string_view text) {
    constexpr std::string_view begin = "sminfo: sm lid ";
    for (auto at = text.find(begin); at != std::string_view::npos; at = text.find(begin, at + 1)) {
        if (at != 0 && text[at - 1] != '\n') continue;
        auto rest = text.substr(at + begin.size());
        rest = rest.substr(0, rest.find('\n'));
        const auto lid = scan::take_number(rest);
        if (!lid || !drop(rest, " sm guid 0x")) continue;
        const auto guid = scan::take_hex_long(rest);
        const auto state = rest.find(" state ");
        if (!guid || state == std::string_view::npos) continue;
        rest.remove_prefix(state + 7);
        const auto number = scan::take_number(rest);
        if (!number) continue;
        manager_look out;
        out.who = {*guid, *lid};
        // It finds its way at its start, and is master then.
        const bool master = *number == 1 || *number == 3;
        out.answer = master ? manager_look::said::master : manager_look::said::other;
        out.words = fmt::format("{} answers as {}", out.who.text(), printable(rest.substr(1, 32)));
        return out;
    }
    return {};
}

}  // namespace

std::string manager_id::text() const { return fmt::format("LID {} (0x{:016x})", lid, guid); }

manager_look read_sminfo(const result<command_output>& ran) {
    manager_look out;
    if (!ran) {
        out.words = ran.error().text();
        return out;
    }
    if (ran->good())
        if (auto found = answer_in(ran->text)) return std::move(*found);
    // libibmad's own words for a question that nobody answered.
    const bool unanswered = ran->stopped == command_output::stop::late ||
                            ran->last_line.find("iberror: failed: query") != std::string::npos ||
                            ran->last_line.find("_do_madrpc failed") != std::string::npos;
    out.answer = unanswered ? manager_look::said::nobody : manager_look::said::unknown;
    out.words = !ran->last_line.empty() ? printable(ran->last_line.substr(0, most_words))
                : ran->stopped == command_output::stop::late
                    ? "no answer in time"
                    : fmt::format("status {}, and no answer that is understood", ran->end.code);
    return out;
}

std::optional<manager_news> manager_memory::take(const manager_look& look, std::int64_t now_ms) {
    using said = manager_look::said;
    if (look.answer == said::unknown) return {};
    if (look.answer != said::master) {
        words_ = look.words;
        if (silent_since_ms_ == 0) silent_since_ms_ = now_ms;
        return {};
    }
    const bool was_told = std::exchange(told_, false);
    silent_since_ms_ = 0;
    const auto before = std::exchange(master_, look.who);
    if (!before || *before == look.who) {
        if (before && !was_told) return {};
        return manager_news{manager_news::kind::master, look.who, {}, look.words};
    }
    return manager_news{manager_news::kind::replaced, *before, look.who, look.words};
}

bool manager_memory::is_overdue(std::int64_t now_ms) const {
    return silent_since_ms_ != 0 && !told_ && now_ms - silent_since_ms_ >= grace_ms_;
}

std::optional<manager_news> manager_memory::tell_silence() {
    if (silent_since_ms_ == 0 || std::exchange(told_, true)) return {};
    return manager_news{manager_news::kind::silent, master_.value_or(manager_id{}), {}, words_};
}

}  // namespace banyan::fault
