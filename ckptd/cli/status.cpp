// SPDX-License-Identifier: BSD-3-Clause
//
// What the daemon says of itself.
#include <cstdio>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ckptd/cli/commands.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {
namespace {

using std::chrono::seconds;

std::string step_of(const json_fields& session, const char* key) {
    const auto at = session.object(key);
    const auto step = at ? at->number("step") : std::unexpected(at.error());
    return step ? std::to_string(*step) : "none";
}

result<void> print_session(const json_fields& s) {
    BANYAN_TRY(const auto c, s.object("counters"));
    BANYAN_TRY(const auto job, s.number("job"));
    BANYAN_TRY(const auto state, s.text("state"));
    BANYAN_TRY(const auto ranks, s.list("ranks"));
    BANYAN_TRY(const auto world, s.number("world"));
    BANYAN_TRY(const auto node, s.text("node"));
    BANYAN_TRY(const auto generation, s.number("generation"));
    BANYAN_TRY(const bool replicated, s.flag("replicated"));
    BANYAN_TRY(const auto memory, s.number("memory_bytes"));
    BANYAN_TRY(const auto written, c.number("storage_bytes_written"));
    BANYAN_TRY(const auto read, c.number("storage_bytes_read"));
    BANYAN_TRY(const auto sent, c.number("peer_bytes_sent"));
    BANYAN_TRY(const auto received, c.number("peer_bytes_received"));
    BANYAN_TRY(const auto warning, s.text("warning", SIZE_MAX));
    const auto name = s.has("name") ? s.text("name").value_or("") : "";
    fmt::print("job {}{}: {}, {} of {} ranks on {}, generation {:x}\n", job,
               name.empty() ? "" : ", state " + printable(name), printable(state), ranks.size(), world,
               printable(node), generation);
    fmt::print("  complete in memory: step {}{}; in storage: step {}\n", step_of(s, "committed"),
               replicated ? " (copied to a second node)" : "", step_of(s, "durable"));
    fmt::print("  memory {}; storage: {} written, {} read; other nodes: {} sent, {} received\n",
               format_bytes(memory), format_bytes(written), format_bytes(read), format_bytes(sent),
               format_bytes(received));
    if (!warning.empty()) fmt::print("  warning: {}\n", printable(warning));
    if (!s.has("states")) return {};
    BANYAN_TRY(const auto states, s.list("states", max_states));
    for (const auto& one : states) BANYAN_CHECK(print_session(one));
    return {};
}

// Only root is told, and not by every release.
std::string huge_pages_of(const json_fields& all) {
    const auto pages = all.object("memory_pages");
    if (!pages) return "";
    const auto reserved = pages->number("reserved"), transparent = pages->number("transparent");
    if (!reserved || !transparent || *reserved + *transparent == 0) return "";
    return fmt::format(" ({} in reserved huge pages, {} in transparent ones)", format_bytes(*reserved),
                       format_bytes(*transparent));
}

result<void> print_status(const json_fields& all) {
    BANYAN_TRY(const auto node, all.text("node"));
    BANYAN_TRY(const auto used, all.number("memory_used"));
    BANYAN_TRY(const auto limit, all.number("memory_limit"));
    BANYAN_TRY(const auto sessions, all.list("sessions"));
    fmt::print("node {}: {} of {} in use{}\n", printable(node), format_bytes(used), format_bytes(limit),
               huge_pages_of(all));
    for (const auto& s : sessions) BANYAN_CHECK(print_session(s));
    return {};
}

}  // namespace

int status(const std::string& socket, bool as_json) {
    const auto text = ckpt::status(socket, seconds(5));
    if (!text) return complain(on_a_node(text.error()));
    if (as_json) {
        std::puts(text->c_str());
        return 0;
    }
    const auto all = nlohmann::json::parse(*text, nullptr, false);
    if (const auto done = print_status(json_fields(all)); !done)
        return complain({errc::invalid_input, "the daemon's answer makes no sense: " + done.error().what,
                         "is banyan-ckpt of the daemon's release?"});
    return 0;
}

int seal(const std::string& socket, std::uint64_t job) {
    const auto jobs = ckpt::seal_now(socket, job, seconds(10));
    if (!jobs) return complain(jobs.error());
    for (const auto& j : *jobs)
        fmt::print("job {}: {}{}\n", j.job, j.step < 0 ? "nothing complete" : fmt::format("step {}", j.step),
                   j.replicated ? ", on two nodes" : "");
    return 0;
}

}  // namespace banyan::ckpt::cli
