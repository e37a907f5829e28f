// SPDX-License-Identifier: BSD-3-Clause
//
// A rank for the tests: reads commands, calls libbanyan_ckpt, prints what came back.
//     save STEP             -> code
//     wait STEP LEVEL MS     -> code
//     test                  -> "code step"
//     restart               -> "code step source same": `same` is 1 when every byte is that step's
//     finalize DRAIN        -> code
//     error                 -> bck_error()
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include <banyan/ckpt.h>
#include <signal.h>

#include "state.hpp"

int main() {
    ::signal(SIGPIPE, SIG_IGN);
    const auto bytes = std::strtoull(std::getenv("STATE_BYTES"), nullptr, 10);
    const auto rank = static_cast<std::uint32_t>(std::strtoul(std::getenv("RANK"), nullptr, 10));
    std::vector<unsigned char> state(bytes);
    std::uint64_t step = 0;
    const int init = bck_init(nullptr, -1, -1);
    const std::uint64_t half = bytes / 2 / 4;
    bck_protect("layer.weight", state.data(), half * 4, "F32", &half, 1);
    bck_protect_bytes("rest", state.data() + half * 4, bytes - half * 4);
    bck_protect("step", &step, sizeof step, "U64", nullptr, 0);
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string command;
        words >> command;
        if (command == "init") {
            std::cout << init << std::endl;
        } else if (command == "save") {
            words >> step;
            state = ckptd_test::state_of(rank, step, bytes);
            bck_protect("layer.weight", state.data(), half * 4, "F32", &half, 1);
            bck_protect_bytes("rest", state.data() + half * 4, bytes - half * 4);
            std::cout << bck_checkpoint(step) << std::endl;
        } else if (command == "wait") {
            std::uint64_t which = 0;
            int level = 0, ms = 0;
            words >> which >> level >> ms;
            std::cout << bck_wait(which, level, ms) << std::endl;
        } else if (command == "test") {
            std::uint64_t found = 0;
            const int code = bck_restart_test(&found);
            std::cout << code << " " << found << std::endl;
        } else if (command == "restart") {
            std::fill(state.begin(), state.end(), 0xee);
            step = 0;
            std::uint64_t found = 0;
            int source = 0;
            const int code = bck_restart(&found, &source);
            const bool same =
                code == BCK_OK && step == found && state == ckptd_test::state_of(rank, found, bytes);
            std::cout << code << " " << found << " " << source << " " << same << std::endl;
        } else if (command == "finalize") {
            int drain = 0;
            words >> drain;
            std::cout << bck_finalize(drain) << std::endl;
        } else if (command == "error") {
            std::cout << bck_error() << std::endl;
        } else if (command == "loop") {
            // Saves without end: to be killed in the middle of a copy.
            words >> step;
            for (;; ++step) {
                std::fill(state.begin(), state.end(), static_cast<unsigned char>(step));
                bck_checkpoint(step);
            }
        }
    }
}
