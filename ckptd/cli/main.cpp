// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-ckpt: what the daemon holds, what lies in a checkpoint directory, and whether it is whole.
#include <fmt/format.h>

#include "ckptd/cli/commands.hpp"
#include "ckptd/daemon/settings.hpp"
#include "common/cli_words.hpp"
#include "common/config.hpp"
#include "common/text.hpp"

using namespace banyan;
using namespace banyan::ckpt::cli;

int main(int argc, char** argv) {
    std::string socket, config, node, dir, step, to, name, every = "2s";
    std::uint64_t job = 0, count = 0;
    std::optional<std::uint32_t> rank;
    bool as_json = false, force = false;
    CLI::App app("Shows and checks what banyan's checkpoint daemon holds.");
    usual_words(app, "banyan-ckpt");
    app.require_subcommand(1);
    app.fallthrough();  // inherited by the subcommands added from here on
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
    auto* show_command = app.add_subcommand("show", "what steps are in storage, or what one of them holds");
    show_command->add_option("PATH", dir, "a checkpoint directory, or a step's folder or milestone in it")
        ->required();
    show_command->add_option("--rank", rank, "of a step, this rank alone");
    show_command->add_flag("--json", as_json, "one JSON object");
    auto* export_command =
        app.add_subcommand("export", "a step's shards as safetensors in another directory");
    export_command
        ->add_option("PATH", dir,
                     "a step's folder or milestone, or a checkpoint directory: its newest whole step")
        ->required();
    export_command->add_option("TO", to, "where the files go")->required();
    export_command->add_option("--rank", rank, "this rank's shard alone");
    export_command->add_flag("--force", force, "replace files that are there");
    auto* drop_command = app.add_subcommand("drop", "remove a step from storage");
    drop_command->add_option("PATH", dir, "the step's folder, or DIR/milestones/NAME")->required();
    drop_command->add_flag("--force", force,
                           "even the only whole step, or the newest one of a job that runs");
    auto* milestone_command =
        app.add_subcommand("milestone", "give a step a name, by which it stays until it is dropped");
    milestone_command->add_option("PATH", dir, "the step's folder")->required();
    milestone_command->add_option("NAME", name, "such as best; a step that has the name loses it")
        ->required();
    auto* restore_command =
        app.add_subcommand("restore", "have the next start begin from this step; newer ones are set aside");
    restore_command->add_option("PATH", dir, "the step's folder or milestone, or the folder of one set aside")
        ->required();
    restore_command->add_flag("--force", force, "even where a job has not given the directory back");
    auto* watch_command = app.add_subcommand("watch", "status, again and again");
    watch_command->add_option("--every", every, "time between two looks");
    watch_command->add_option("--count", count, "end after so many looks");
    auto* seal_command = app.add_subcommand("seal", "bring what is sealed into safety now (root)");
    seal_command->add_option("--job", job, "job id; 0 = all");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : 2;
    }
    if (*list_command) return list(dir);
    if (*verify_command) return verify(dir, step);
    if (*show_command) return show(dir, rank, as_json);
    if (*export_command) return export_step(dir, to, rank, force);
    if (*drop_command) return drop(dir, force);
    if (*milestone_command) return milestone(dir, name);
    if (*restore_command) return restore(dir, force);
    const auto period = parse_duration(every);
    if (!period || period->count() == 0)
        return complain({errc::invalid_input, fmt::format("--every \"{}\" is no time", every), "such as 2s"});
    if (socket.empty()) {
        const std::filesystem::path file =
            config.empty() ? default_config_path() : std::filesystem::path(config);
        const auto settings = ckpt::load_settings(file, node);
        if (!settings) return complain(settings.error());
        socket = settings->socket;
    }
    if (*watch_command) return watch(socket, *period, count);
    return *seal_command ? seal(socket, job) : status(socket, as_json);
}
