// SPDX-License-Identifier: BSD-3-Clause
//
// The command line. What depends on where the rank runs is never a flag: it comes from the environment.
#include <CLI/CLI.hpp>

#include "examples/trainer/settings.hpp"

namespace trainer {

std::optional<int> read_settings(int argc, char** argv, settings& out) {
    CLI::App app{
        "A small deterministic trainer with tensor, pipeline and data parallel ranks.\n"
        "Ranks, sizes and addresses come from the environment: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT "
        "and\n"
        "BANYAN_SHAPE (or BANYAN_TP_RANK, BANYAN_TP_SIZE and so on).",
        "banyan-trainer"};
    auto& work = out.work;
    std::uint32_t step_ms = 0, start_s = 60, peer_s = 15;
    app.add_option("--steps", work.steps, "Train up to this step")->capture_default_str();
    app.add_option("--stop-file", work.stop_file,
                   "After --steps train on, and end when this file is there; every rank must see it");
    app.add_option("--step-ms", step_ms, "Shortest time of a step in milliseconds")
        ->check(CLI::Range(0, 3'600'000));
    app.add_option("--hidden", work.hidden, "Width of the model")
        ->check(CLI::Range(1, 16384))
        ->capture_default_str();
    app.add_option("--layers", work.layers, "Layers; a multiple of pp")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--micro-batches", work.micro_batches, "Micro-batches per step and replica")
        ->check(CLI::Range(1, 1024))
        ->capture_default_str();
    app.add_option("--batch", work.batch, "Samples per micro-batch")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--seed", work.seed, "Seed of weights and data")->capture_default_str();
    app.add_option("--learning-rate", work.learning_rate, "Step size")
        ->check(CLI::Range(0.0, 10.0))
        ->capture_default_str();
    app.add_option("--state-bytes", work.state_bytes, "Pad the state of each rank to this size (64M, 2G)")
        ->transform(CLI::AsSizeValue(false));
    app.add_option("--log", out.log, "Append the lines of output to this file too");
    app.add_option("--start-timeout", start_s, "Seconds that the ranks have to find each other")
        ->check(CLI::Range(1, 3600))
        ->capture_default_str();
    app.add_option("--peer-timeout", peer_s,
                   "Seconds without a word from a peer after which it counts as lost")
        ->check(CLI::Range(1, 3600))
        ->capture_default_str();
    app.set_version_flag("--version", "banyan-trainer " BANYAN_VERSION);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e);
    }
    out.step_time = std::chrono::milliseconds(step_ms);
    out.start_timeout = std::chrono::seconds(start_s);
    out.peer_timeout = std::chrono::seconds(peer_s);
    out.self = identity_from_environment();
    check(work, out.self);
    return std::nullopt;
}

}  // namespace trainer
