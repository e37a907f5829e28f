// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include <banyan/topo/reader.hpp>
#include <fmt/format.h>

#include "common/file.hpp"
#include "common/text.hpp"
#include "topo/cli/cli.hpp"
#include "topo/cli/output.hpp"
#include "topo/cli/output_of.hpp"
#include "topo/counted.hpp"

namespace banyan::topo::cli {

void add_discover(CLI::App& app, action& chosen) {
    struct options {
        std::string output, timeout = "60s", program = "ibnetdiscover";
    };
    const auto o = std::make_shared<options>();
    auto* sub = app.add_subcommand("discover", "Run ibnetdiscover and keep its output");
    sub->add_option("-o,--output", o->output, "file to replace (default: standard output)")
        ->check(named_file);
    sub->add_option("--timeout", o->timeout, "give up after this time (default 60s)");
    sub->add_option("--program", o->program, "the program to run (default ibnetdiscover)");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto timeout, parse_duration(o->timeout));
            BANYAN_TRY(const auto text,
                       output_of({o->program}, timeout, max_dump_bytes, "infiniband-diags",
                                 "its own message stands above; it needs access to an InfiniBand port"));
            BANYAN_TRY(const auto dump, read_dump(text));
            BANYAN_CHECK(write_output(o->output, text));
            if (!is_stream(o->output)) fmt::print("{}: {}\n", o->output, counted(dump.nodes.size(), "node"));
            return fine;
        };
    });
}

}  // namespace banyan::topo::cli
