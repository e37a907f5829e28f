// SPDX-License-Identifier: BSD-3-Clause
//
// The --train options: each one's text, and all of them out of a job's environment.
#include "test/fuzz/fuzz_input.hpp"
#include "train/options.hpp"

using namespace banyan;

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
        if (options->checkpoint && !options->checkpoint->directory.empty())
            fuzz::must(options->checkpoint->directory.front() == '/');
    }
    return 0;
}
