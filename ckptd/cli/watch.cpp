// SPDX-License-Identifier: BSD-3-Clause
//
// The node's sessions, again and again: on a terminal in place, elsewhere a line for each session.
#include <cstdio>
#include <ctime>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "ckptd/cli/commands.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "common/clock.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {
namespace {

std::string step_in(const json_fields& session, const char* key) {
    const auto at = session.object(key);
    const auto step = at ? at->number("step") : std::unexpected(at.error());
    return step ? std::to_string(*step) : "-";
}

std::string now() {
    const auto t = std::time(nullptr);
    std::tm local{};
    ::localtime_r(&t, &local);
    char text[16];
    std::strftime(text, sizeof text, "%H:%M:%S", &local);
    return text;
}

// At most 100 columns. What becomes of a job becomes of all its states: a named one has its name there.
result<std::string> line_of(const json_fields& s) {
    BANYAN_TRY(const auto job, s.number("job"));
    BANYAN_TRY(auto state, s.text("state"));
    BANYAN_TRY(const bool replicated, s.flag("replicated"));
    if (s.has("name")) state = "/" + s.text("name").value_or("");
    const auto committed = step_in(s, "committed");
    return fmt::format("{} job {:<8} {:<9} memory {:<12} copied {:<12} storage {}\n", now(), job,
                       fitted(state, 9), committed, replicated ? committed : "-", step_in(s, "durable"));
}

result<std::string> lines_of(const json_fields& all) {
    BANYAN_TRY(const auto node, all.text("node"));
    BANYAN_TRY(const auto sessions, all.list("sessions"));
    auto out = sessions.empty() ? fmt::format("{} {}: no session\n", now(), fitted(node, 32)) : std::string();
    for (const auto& s : sessions) {
        BANYAN_TRY(const auto line, line_of(s));
        out += line;
        if (!s.has("states")) continue;
        BANYAN_TRY(const auto states, s.list("states", max_states));
        for (const auto& one : states) {
            BANYAN_TRY(const auto of_state, line_of(one));
            out += of_state;
        }
    }
    return out;
}

result<std::string> ask(const std::string& socket) {
    BANYAN_TRY(const auto text, ckpt::status(socket, std::chrono::seconds(5)));
    const auto all = nlohmann::json::parse(text, nullptr, false);
    auto lines = lines_of(json_fields(all));
    if (!lines)
        return fail(errc::unavailable, "the daemon's answer makes no sense: " + lines.error().what,
                    "is banyan-ckpt of the daemon's release?");
    return lines;
}

}  // namespace

int watch(const std::string& socket, std::chrono::milliseconds every, std::uint64_t count) {
    const bool in_place = ::isatty(STDOUT_FILENO) == 1;
    for (std::uint64_t i = 0; count == 0 || i < count; ++i) {
        if (i != 0) clock::sleep_for(every);
        const auto lines = ask(socket);
        if (!lines && i == 0) return complain(on_a_node(lines.error()));  // later it may come back
        if (in_place) fmt::print("\x1b[H\x1b[J");
        if (lines)
            fmt::print("{}", *lines);
        else
            fmt::print("{} {}\n", now(), printable(lines.error().what));
        if (std::fflush(stdout) != 0) return 1;  // nobody reads on
    }
    return 0;
}

}  // namespace banyan::ckpt::cli
