// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-run: its command line, and the daemon's status text.
#include "supervisor/options.hpp"
#include "supervisor/progress.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    (void)supervisor::newest_in_status(fuzz::as_text(data, size), 1);
    fuzz::input in(data, size);
    std::vector<std::string> words;
    while (!in.empty() && words.size() < 64) words.emplace_back(in.text());
    if (const auto options = supervisor::split_arguments(words))
        fuzz::must(options->srun.size() <= words.size());
    return 0;
}
