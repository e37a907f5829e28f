// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>

#include "topo/cli/cli.hpp"
#include "topo/cli/output.hpp"
#include "topo/counted.hpp"

namespace banyan::topo::cli {

namespace {

struct snapshot_options {
    fabric_input input;
    std::string output, previous;
};

/// Whose leaf groups keep their ids: --previous, or the file that is to be replaced.
result<std::optional<fabric>> previous_of(const snapshot_options& o) {
    if (!o.previous.empty()) {
        BANYAN_TRY(auto given, load_snapshot(o.previous));
        return std::optional<fabric>(std::move(given));
    }
    std::error_code none_there;
    if (is_stream(o.output) || !std::filesystem::is_regular_file(o.output, none_there))
        return std::optional<fabric>();
    auto there = load_snapshot(o.output);
    if (there) return std::optional<fabric>(std::move(*there));
    fmt::print(stderr, "banyan-topo: {}; the leaf groups are numbered anew\n", there.error().what);
    return std::optional<fabric>();
}

}  // namespace

void add_snapshot(CLI::App& app, action& chosen) {
    const auto o = std::make_shared<snapshot_options>();
    auto* sub = app.add_subcommand("snapshot", "Write the snapshot that slurmctld and faultd read");
    o->input.add_to(*sub);
    sub->add_option("-o,--output", o->output, "file to replace; leaf groups that it has keep their ids")
        ->required()
        ->check(named_file);
    sub->add_option("--previous", o->previous,
                    "the snapshot whose leaf groups keep their ids, instead of the file to replace");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto previous, previous_of(*o));
            BANYAN_TRY(auto f, o->input.load(previous ? &*previous : nullptr));
            if (f.created_unix_s == 0) f.created_unix_s = std::time(nullptr);
            BANYAN_CHECK(o->input.need_hosts(f));
            BANYAN_CHECK(write_output(o->output, encode_snapshot(f)));
            fmt::print(is_stream(o->output) ? stderr : stdout, "{}: {} in {}, {}, {}\n", o->output,
                       counted(f.hosts.size(), "host"), counted(f.leaf_groups.size(), "leaf group"),
                       counted(f.switches.size(), "switch", "switches"), counted(faults(f), "defect"));
            return fine;
        };
    });
}

}  // namespace banyan::topo::cli
