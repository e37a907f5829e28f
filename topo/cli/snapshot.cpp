// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <memory>

#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>

#include "topo/cli/cli.hpp"
#include "topo/cli/output.hpp"

namespace banyan::topo::cli {

void add_snapshot(CLI::App& app, action& chosen) {
    struct options {
        fabric_input input;
        std::string output;
    };
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand("snapshot", "Write the snapshot that slurmctld and faultd read");
    o->input.add_to(*sub);
    sub->add_option("-o,--output", o->output, "file to replace")->required();
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto f, o->input.load());
            if (f.hosts.empty())
                return fail(errc::invalid_input, fmt::format("{} has no compute host", o->input.path()),
                            "nothing was written");
            BANYAN_CHECK(write_output(o->output, encode_snapshot(f)));
            fmt::print(is_stream(o->output) ? stderr : stdout,
                       "{}: {} hosts in {} leaf groups, {} switches, {} defects\n", o->output, f.hosts.size(),
                       f.leaf_groups.size(), f.switches.size(),
                       std::count_if(f.defects.begin(), f.defects.end(),
                                     [](const auto& d) { return !is_notice(d); }));
            return fine;
        };
    });
}

}  // namespace banyan::topo::cli
