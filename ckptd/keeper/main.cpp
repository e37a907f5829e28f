// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-ckpt-keeper PROGRAM [ARGUMENT...]: started by `banyan-ckptd --keeper`, not by hand.
#include <cstdio>
#include <string_view>

#include "ckptd/keeper/keeper.hpp"
#include "common/build_info.hpp"
#include "common/clock.hpp"
#include "common/limits.hpp"

int main(int argc, char** argv) {
    if (argc == 2 && std::string_view(argv[1]) == "--version") {
        std::puts(banyan::version_line("banyan-ckpt-keeper").c_str());
        return 0;
    }
    if (argc < 2 || argv[1][0] != '/') {
        std::fputs("usage: banyan-ckpt-keeper /PATH/TO/banyan-ckptd [ARGUMENT...]\n", stderr);
        return 2;
    }
    if (const auto followed = banyan::clock::follow_environment(); !followed) {
        std::fprintf(stderr, "banyan-ckpt-keeper: %s\n", followed.error().text().c_str());
        return 1;
    }
    constexpr std::size_t files_needed = 4096;  // as many memories as the daemon may have
    (void)banyan::raise_descriptor_limit(files_needed);
    banyan::ckpt::keeper::keeper keeper({argv + 1, argv + argc});
    return keeper.run();
}
