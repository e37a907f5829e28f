// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-trainer: a small training program as a user would write it: it saves often, restores at its start,
// and ends when a peer is lost. It knows nothing of faults, restarts or spares.
#include <csignal>
#include <cstdio>
#include <exception>
#include <thread>

#include <unistd.h>

#include "examples/trainer/checkpoint.hpp"
#include "examples/trainer/failure.hpp"
#include "examples/trainer/net/mesh.hpp"
#include "examples/trainer/report.hpp"
#include "examples/trainer/schedule.hpp"

namespace {

using namespace trainer;

bool exists(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

/// All ranks stop after the same step, although they look at the file one after the other.
bool over(const task& work, std::uint64_t step, mesh& peers) {
    if (step < work.steps) return false;
    return work.stop_file.empty() || peers.any(static_cast<std::uint32_t>(step), exists(work.stop_file));
}

void train(const settings& conf, mesh& peers, state& s, checkpoint& saves, report& out) {
    const auto& self = conf.self;
    const bool owns_loss = is_last_stage(self) && self.place[axis::dp] == 0 && self.place[axis::tp] == 0;
    schedule steps(conf.work, self, peers);
    while (!over(conf.work, s.count.step, peers)) {
        const auto begin = clock::now();
        const float loss = steps.step(s);
        std::this_thread::sleep_until(begin + conf.step_time);
        const std::chrono::duration<double, std::milli> took = clock::now() - begin;
        // Printed before it is saved: a step that is restored has its line in the log.
        if (owns_loss) out.step(s.count.step, loss, took.count());
        saves.after_step();
    }
}

void run(const settings& conf) {
    const auto& self = conf.self;
    report out(conf.log);
    auto s = initial_state(conf.work, self);
    checkpoint saves(conf.work, self, s, out);
    if (const auto from = saves.restore()) out.restored(self, s.count.step, from->source, s.bytes());

    const auto listener = listen_on(in_addr{}, 0, clock::now());
    const auto ranks = meet(conf, listener.get(), s.count.step);
    mesh peers(conf, ranks, listener.get());
    if (self.rank == 0) out.started(self);

    train(conf, peers, s, saves, out);
    saves.finish();
    if (self.rank == 0) out.finished(s.count.step);
}

}  // namespace

int main(int argc, char** argv) {
    std::signal(SIGPIPE, SIG_IGN);
    settings conf;
    try {
        if (const auto code = read_settings(argc, argv, conf)) return *code;
        run(conf);
        return 0;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "banyan-trainer: rank %u on %s: %s\n", conf.self.rank, conf.self.node.c_str(),
                     e.what());
        return 1;
    }
}
