// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-ckpt: what the daemon holds, what lies in a checkpoint directory, and whether it is whole.
#include <cstdio>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "ckptd/daemon/settings.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "ckptd/store/store.hpp"
#include "common/build_info.hpp"
#include "common/config.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace {

using namespace banyan;
using std::chrono::seconds;

int complain(const error& e) {
    std::fprintf(stderr, "banyan-ckpt: %s\n", printable(e.text()).c_str());
    return e.code == errc::invalid_input ? 2 : 1;
}

ckpt::storage_user myself() { return {::geteuid(), ::getegid(), {::getegid()}}; }

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
    fmt::print("job {}: {}, {} of {} ranks on {}, generation {:x}\n", job, printable(state), ranks.size(),
               world, printable(node), generation);
    fmt::print("  complete in memory: step {}{}; in storage: step {}\n", step_of(s, "committed"),
               replicated ? " (copied to a second node)" : "", step_of(s, "durable"));
    fmt::print("  memory {}; storage: {} written, {} read; other nodes: {} sent, {} received\n",
               format_bytes(memory), format_bytes(written), format_bytes(read), format_bytes(sent),
               format_bytes(received));
    if (!warning.empty()) fmt::print("  warning: {}\n", printable(warning));
    return {};
}

result<void> print_status(const json_fields& all) {
    BANYAN_TRY(const auto node, all.text("node"));
    BANYAN_TRY(const auto used, all.number("memory_used"));
    BANYAN_TRY(const auto limit, all.number("memory_limit"));
    BANYAN_TRY(const auto sessions, all.list("sessions"));
    fmt::print("node {}: {} of {} in use\n", printable(node), format_bytes(used), format_bytes(limit));
    for (const auto& s : sessions) BANYAN_CHECK(print_session(s));
    return {};
}

int status(const std::string& socket, bool as_json) {
    const auto text = ckpt::status(socket, seconds(5));
    if (!text) return complain(text.error());
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

int list(const std::string& dir) {
    const auto steps = ckpt::list_steps(myself(), dir);
    if (!steps) return complain(steps.error());
    for (const auto step : *steps) {
        const auto m = ckpt::scan_step(myself(), dir, step, 0);
        if (!m)
            fmt::print("{:>12}  damaged: {}\n", step, printable(m.error().what));
        else
            fmt::print("{:>12}  job {}  {} ranks  {}\n", step, m->job, m->world, format_bytes(m->bytes));
    }
    if (steps->empty()) fmt::print("no committed step in {}\n", printable(dir));
    return 0;
}

// Every shard against the manifest, which is checked as a whole first: then it says what the files should be.
// Returns the number of damaged files.
result<std::size_t> verify_step(const std::string& dir, std::uint64_t step) {
    BANYAN_CHECK(ckpt::scan_step(myself(), dir, step, 0));
    std::size_t damaged = 0;
    const auto check = [&](const ckpt::shard_file& f) {
        const auto read = ckpt::check_shard(myself(), dir, step, f);
        if (read) return;
        ++damaged;
        fmt::print("{}\n", printable(read.error().what));
    };
    BANYAN_TRY(const auto m, ckpt::scan_step(myself(), dir, step, 0, check));
    fmt::print("step {}: {} of {} files are whole\n", step, m.world - damaged, m.world);
    return damaged;
}

int verify(const std::string& dir, const std::string& which) {
    std::vector<std::uint64_t> steps;
    if (!which.empty()) {
        const auto step = parse_number(which);
        if (!step) return complain(step.error());
        steps = {*step};
    } else {
        const auto all = ckpt::list_steps(myself(), dir);
        if (!all) return complain(all.error());
        steps = *all;
        if (steps.empty())
            return complain({errc::not_found, fmt::format("no committed step in {}", dir), ""});
    }
    bool whole = true;
    for (const auto step : steps) {
        const auto damaged = verify_step(dir, step);
        if (!damaged) complain(damaged.error());
        whole = whole && damaged && *damaged == 0;
    }
    return whole ? 0 : 1;
}

int seal(const std::string& socket, std::uint64_t job) {
    const auto jobs = ckpt::seal_now(socket, job, seconds(10));
    if (!jobs) return complain(jobs.error());
    for (const auto& j : *jobs)
        fmt::print("job {}: {}{}\n", j.job, j.step < 0 ? "nothing complete" : fmt::format("step {}", j.step),
                   j.replicated ? ", on two nodes" : "");
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::string socket, config, node, dir, step;
    std::uint64_t job = 0;
    bool as_json = false;
    CLI::App app("Shows and checks what banyan's checkpoint daemon holds.");
    app.require_subcommand(1);
    app.fallthrough();  // inherited by the subcommands added from here on
    app.set_version_flag("--version", version_line("banyan-ckpt"));
    app.add_option("--socket", socket, "the daemon's socket (default: socket in [ckptd] of banyan.conf)");
    app.add_option("--config", config, "banyan.conf");
    app.add_option("--node", node, "name of this node, for %n in the socket's path");
    auto* status_command = app.add_subcommand("status", "sessions, steps and bytes of this node's daemon");
    status_command->add_flag("--json", as_json, "as the daemon says it");
    auto* list_command = app.add_subcommand("ls", "committed steps in a checkpoint directory");
    list_command->add_option("DIR", dir)->required();
    auto* verify_command =
        app.add_subcommand("verify", "checksums of every file against the manifest; exit 1 on damage");
    verify_command->add_option("DIR", dir)->required();
    verify_command->add_option("STEP", step, "one step (default: all that are committed)");
    auto* seal_command = app.add_subcommand("seal", "bring what is sealed into safety now (root)");
    seal_command->add_option("--job", job, "job id; 0 = all");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    if (*list_command) return list(dir);
    if (*verify_command) return verify(dir, step);
    if (socket.empty()) {
        const std::filesystem::path file =
            config.empty() ? default_config_path() : std::filesystem::path(config);
        const auto settings = ckpt::load_settings(file, node);
        if (!settings) return complain(settings.error());
        socket = settings->socket;
    }
    return *seal_command ? seal(socket, job) : status(socket, as_json);
}
