// SPDX-License-Identifier: BSD-3-Clause
//
// The calls to libbanyan_ckpt.
#include "examples/trainer/checkpoint.hpp"

#include <cstdlib>

#include <banyan/ckpt.h>

#include "examples/trainer/failure.hpp"

namespace trainer {
namespace {

/// As a piece of the model: every data parallel group has the same, so that a rank of one may begin with what
/// that of another has saved, in a run with another number of groups, too.
void protect(const identity& self, const char* name, void* data, std::size_t bytes, const char* type,
             std::uint64_t count) {
    if (bytes == 0) return;
    const std::uint64_t all = count * model_parts(self), begin = count * model_part(self);
    if (bck_protect_piece(name, data, bytes, type, &count, 1, &all, &begin) != BCK_OK)
        throw failure(std::string("cannot register ") + name + " for checkpoints: " + bck_error());
}

const char* name_of(int source) {
    switch (source) {
        case BCK_FROM_LOCAL:
            return "local";
        case BCK_FROM_PEER:
            return "peer";
        case BCK_FROM_STORAGE:
            return "storage";
        default:
            return "none";
    }
}

}  // namespace

checkpoint::checkpoint(const task& work, const identity& self, state& s, report& out)
    : work_(work), self_(self), state_(s), report_(out), active_(self.checkpoints) {
    if (!active_) return;
    if (const int code = bck_init(nullptr, static_cast<int>(self.rank), static_cast<int>(self.world));
        code == BCK_E_INVALID)
        throw failure(std::string("checkpoints: ") + bck_error());
    protect(self, "weights", s.weights.data(), s.weights.size() * sizeof(float), "F32", s.weights.size());
    protect(self, "momentum", s.momentum.data(), s.momentum.size() * sizeof(float), "F32", s.momentum.size());
    protect(self, "counters", &s.count, sizeof s.count, "U64", sizeof s.count / sizeof(std::uint64_t));
    protect(self, "padding", s.padding.data(), s.padding.size() * sizeof(std::uint64_t), "U64",
            s.padding.size());
}

checkpoint::~checkpoint() {
    if (active_) bck_finalize(0);
}

std::optional<restored_from> checkpoint::restore() {
    if (!active_) return std::nullopt;
    std::uint64_t step = 0;
    int source = BCK_FROM_NONE;
    const int code = bck_restart(&step, &source);
    if (code == BCK_E_NOTFOUND) return std::nullopt;
    // Where the prolog could not start the daemon this node trains without; one that should be there may have
    // the state.
    if (code == BCK_E_NODAEMON && std::getenv("BANYAN_CKPT_OFF")) return std::nullopt;
    if (code != BCK_OK) throw failure(std::string("cannot restore: ") + bck_error());
    if (step != state_.count.step)
        throw failure("the checkpoint of step " + std::to_string(step) + " holds the state of step " +
                      std::to_string(state_.count.step));
    check_padding(state_, self_);
    keep_own_sequence(state_, work_, self_);
    return restored_from{name_of(source)};
}

void checkpoint::after_step() {
    if (!active_ || state_.count.step % self_.checkpoint_every != 0) return;
    const int code = bck_checkpoint(state_.count.step);
    if (code == BCK_OK || code == BCK_E_NODAEMON || complained_)
        return;  // the library itself tells of a lost daemon
    complained_ = true;
    report_.note("rank " + std::to_string(self_.rank) + ": step " + std::to_string(state_.count.step) +
                 " is not saved: " + bck_error());
}

void checkpoint::finish() {
    if (!active_) return;
    active_ = false;
    // All ranks of the job hear the same.
    if (bck_finalize(1) == BCK_E_TIMEOUT && self_.rank == 0)
        report_.note("rank " + std::to_string(self_.rank) + ": " + bck_error());
}

}  // namespace trainer
