// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "topo/cli/cli.hpp"

namespace banyan::topo::cli {

void add_check(CLI::App& app, action& chosen) {
    struct options {
        std::string input;
        bool json = false;
    };
    const auto o = std::make_shared<options>();
    auto* sub =
        app.add_subcommand("check", "List what is wrong with the fabric; exit code 1 when anything is");
    sub->add_option("FABRIC", o->input, "output of ibnetdiscover, or a snapshot")->required();
    sub->add_flag("--json", o->json, "print JSON");
    sub->callback([o, &chosen] {
        chosen = [o]() -> result<int> {
            BANYAN_TRY(const auto f, load_fabric(o->input));
            auto list = nlohmann::json::array();
            for (const auto& d : f.defects) {
                std::string objects;
                for (const auto& name : d.objects) objects += (objects.empty() ? "" : " - ") + name;
                if (!o->json) fmt::print("{:<16} {}: {}\n", d.kind, objects, d.evidence);
                list.push_back({{"kind", d.kind},
                                {"objects", d.objects},
                                {"evidence", d.evidence},
                                {"confidence", d.confidence}});
            }
            if (o->json)
                fmt::print("{}\n", list.dump(1, ' ', true, nlohmann::json::error_handler_t::replace));
            if (!o->json)
                fmt::print("{} defects on {} hosts and {} switches\n", f.defects.size(), f.hosts.size(),
                           f.switches.size());
            return f.defects.empty() ? fine : found_something;
        };
    });
}

}  // namespace banyan::topo::cli
