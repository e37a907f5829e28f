// SPDX-License-Identifier: BSD-3-Clause
//
// The --train options: each one's text, and all of them out of a job's environment; and the plan that a
// prolog makes of those.
#include "test/fuzz/fuzz_input.hpp"
#include "train/options.hpp"
#include "train/plan_without_select.hpp"

using namespace banyan;

namespace {

/// On nodes that slurmd names: on all of them, and on no other.
void plan_on_some(const train::options& asked) {
    train::running_job job{7, 1, {}, 0, 0, {}};
    for (const std::size_t nodes : {1U, 2U, 3U, 9U}) {
        while (job.nodes.size() < nodes) job.nodes.push_back("n" + std::to_string(job.nodes.size()));
        job.nodes_at_start = static_cast<std::uint32_t>(nodes);
        const auto plan = train::plan_without_select(asked, job);
        if (!plan) continue;
        fuzz::must(plan->nodes.size() + plan->spares.size() == nodes);
        const auto told = train::parse_plan(train::to_text(*plan));
        fuzz::must(told && told->nodes == plan->nodes && told->buddies == plan->buddies);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    train::env_reader reader;
    while (!in.empty()) {
        const auto text = in.text();
        reader.take(text);
        for (std::size_t option = 0; option < train::option_count; ++option) {
            const bool good = train::check(static_cast<train::which>(option), text).has_value();
            // What is good for srun is good for slurmctld.
            train::env_reader one;
            one.take(std::string(train::option_names[option].env) + "=" + std::string(text));
            const auto read = one.finish();
            fuzz::must(!good || text.find('\0') != text.npos || read.has_value());
        }
    }
    if (const auto options = reader.finish()) {
        fuzz::must(options->spares <= train::max_spares && options->wait_minutes <= train::max_wait_minutes);
        plan_on_some(*options);
        if (options->checkpoint && !options->checkpoint->directory.empty())
            fuzz::must(options->checkpoint->directory.front() == '/');
    }
    return 0;
}
