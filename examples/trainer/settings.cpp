// SPDX-License-Identifier: BSD-3-Clause
//
// The environment of a rank, checked.
#include "examples/trainer/settings.hpp"

#include <charconv>
#include <cstdlib>

#include <unistd.h>

#include "examples/trainer/failure.hpp"
#include "examples/trainer/hash.hpp"

namespace trainer {
namespace {

std::string text(const char* name, const std::string& fallback = {}) {
    const char* value = std::getenv(name);
    return value && *value ? value : fallback;
}

std::uint64_t number(const char* name, std::optional<std::uint64_t> fallback, std::uint64_t min,
                     std::uint64_t max) {
    const auto value = text(name);
    if (value.empty()) {
        if (fallback) return *fallback;
        throw failure(std::string(name) +
                      " is not set; start the trainer with srun or banyan-run, or set RANK, "
                      "WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
    }
    std::uint64_t out = 0;
    const auto [end, ec] = std::from_chars(value.data(), value.data() + value.size(), out);
    if (ec != std::errc{} || end != value.data() + value.size() || out < min || out > max)
        throw failure(std::string(name) + " is \"" + value + "\"; expected a number from " +
                      std::to_string(min) + " to " + std::to_string(max));
    return out;
}

std::string variable(std::size_t a, const char* suffix) {
    std::string name = "BANYAN_";
    for (const char c : axis_names[a]) name += static_cast<char>(c - 'a' + 'A');
    return name + suffix;
}

std::string host_name() {
    char buffer[256] = {};
    if (gethostname(buffer, sizeof buffer - 1) != 0) return "unknown";
    return buffer;
}

/// Of a rank whose place along an axis is not that of the shape.
std::string contradiction(const identity& self, std::size_t axis, std::uint64_t rank, std::uint64_t size) {
    return variable(axis, "_RANK") + " of " + variable(axis, "_SIZE") + " is " + std::to_string(rank) +
           " of " + std::to_string(size) + ", but BANYAN_SHAPE " + self.shape_text + " gives rank " +
           std::to_string(self.rank) + " " + std::to_string(self.place.of[axis]) + " of " +
           std::to_string(self.sizes.of[axis]);
}

/// Sizes and place from BANYAN_SHAPE, or from the variables of each axis, or all ranks along dp.
void read_place(identity& self) {
    self.shape_text = text("BANYAN_SHAPE");
    const bool by_axis = self.shape_text.empty() && !text("BANYAN_DP_SIZE").empty();
    if (self.shape_text.empty() && !by_axis) self.shape_text = "dp=" + std::to_string(self.world);
    if (!self.shape_text.empty()) {
        const auto parsed = parse_shape(self.shape_text);
        if (parsed.ranks() != self.world)
            throw failure("BANYAN_SHAPE " + self.shape_text + " is " + std::to_string(parsed.ranks()) +
                          " ranks, but WORLD_SIZE is " + std::to_string(self.world));
        self.sizes = parsed.sizes;
        self.place = parsed.place(self.rank);
    }
    for (std::size_t a = 0; a < axes; ++a) {
        const auto size_name = variable(a, "_SIZE"), rank_name = variable(a, "_RANK");
        const auto size = number(size_name.c_str(), by_axis ? 1 : self.sizes.of[a], 1, self.world);
        const auto rank = number(rank_name.c_str(), by_axis ? 0 : self.place.of[a], 0, size - 1);
        if (by_axis) {
            self.sizes.of[a] = static_cast<std::uint32_t>(size);
            self.place.of[a] = static_cast<std::uint32_t>(rank);
            self.shape_text.append(a ? "," : "")
                .append(axis_names[a])
                .append("=")
                .append(std::to_string(size));
        } else if (size != self.sizes.of[a] || rank != self.place.of[a]) {
            throw failure(contradiction(self, a, rank, size));
        }
    }
}

}  // namespace

std::uint64_t task::digest() const {
    std::uint64_t out = 0;
    for (const std::uint64_t part :
         {steps, seed, state_bytes, std::uint64_t{hidden}, std::uint64_t{layers},
          std::uint64_t{micro_batches}, std::uint64_t{batch},
          static_cast<std::uint64_t>(learning_rate * 1e6F), std::uint64_t{!stop_file.empty()}})
        out = mix(out ^ part);
    return out;
}

identity identity_from_environment() {
    identity out;
    out.world = static_cast<std::uint32_t>(number("WORLD_SIZE", std::nullopt, 1, 1u << 20));
    out.rank = static_cast<std::uint32_t>(number("RANK", std::nullopt, 0, out.world - 1));
    out.master_addr = text("MASTER_ADDR", "127.0.0.1");
    out.master_port = static_cast<std::uint16_t>(
        number("MASTER_PORT", out.world == 1 ? std::optional<std::uint64_t>(1) : std::nullopt, 1, 65535));
    out.node = text("BANYAN_NODE", text("SLURMD_NODENAME", host_name()));
    out.run = text("BANYAN_JOB", text("SLURM_JOB_ID", "local")) + "." + text("SLURM_STEP_ID", "0");
    out.checkpoints = !text("BANYAN_CKPT_SOCKET").empty();
    out.checkpoint_every = number("BANYAN_CKPT_EVERY", 1, 1, 1'000'000'000);
    read_place(out);
    return out;
}

void check(const task& work, const identity& self) {
    for (const auto a : {axis::cp, axis::ep})
        if (self.sizes[a] != 1)
            throw failure("shape " + self.shape_text + ": this trainer has no " +
                          std::string(axis_names[static_cast<std::size_t>(a)]) +
                          " parallelism; use tp, pp and dp");
    if (work.layers % self.sizes[axis::pp] != 0)
        throw failure("--layers " + std::to_string(work.layers) +
                      " does not divide by pp=" + std::to_string(self.sizes[axis::pp]));
    if (2 * work.hidden % self.sizes[axis::tp] != 0)
        throw failure("twice --hidden " + std::to_string(work.hidden) +
                      " does not divide by tp=" + std::to_string(self.sizes[axis::tp]));
}

}  // namespace trainer
