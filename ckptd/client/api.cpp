// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions of a process and of its states.
#include "ckptd/client/api.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include <banyan/ckpt.h>

#include "ckptd/client/client.hpp"
#include "ckptd/client/device.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "common/guard.hpp"

using banyan::ckpt::last_error;
using banyan::ckpt::report;

struct bck_state : banyan::ckpt::client {};

namespace {

// The states that were opened, as long as the process lives: a handle stays one.
struct open_states {
    std::mutex lock;
    std::map<std::string, std::unique_ptr<bck_state>> by_name;

    /// Null where the process has as many as a job may have.
    bck_state* of(const char* name) {
        const std::scoped_lock held(lock);
        const auto known = by_name.find(name);
        // Whether one is in use is known when its call has ended: asked where that decides alone.
        if (known == by_name.end() && by_name.size() >= banyan::ckpt::max_states) {
            const auto used =
                std::ranges::count_if(by_name, [](const auto& one) { return one.second->is_in_use(); });
            if (static_cast<std::size_t>(used) >= banyan::ckpt::max_states) return nullptr;
        }
        auto& place = by_name[name];
        if (!place) place = std::make_unique<bck_state>();
        return place.get();
    }
    std::vector<bck_state*> all() {
        const std::scoped_lock held(lock);
        std::vector<bck_state*> out;
        for (const auto& [name, s] : by_name) out.push_back(s.get());
        return out;
    }
};

open_states& the_states() {
    static auto* const s = new open_states;  // as the_client()
    return *s;
}

banyan::ckpt::client& the_client() {
    static auto* const c =
        new banyan::ckpt::client;  // never destroyed: other threads may save while the process ends
    return *c;
}

banyan::ckpt::given_regions given_or_protected(const bck_tensor* tensors, size_t count) {
    if (!tensors && count == 0) return std::nullopt;
    return std::span(tensors, count);
}

// One after the other, the next one while the daemon works for the one before.
banyan::ckpt::outcome finalize(const std::vector<bck_state*>& states, std::size_t from, bool drain) {
    banyan::ckpt::outcome others;
    const std::function<void()> next = [&] { others = finalize(states, from + 1, drain); };
    auto& c = from == 0 ? the_client() : *states[from - 1];
    auto own = c.finalize(drain, from < states.size() ? next : nullptr);
    return own.code != 0 ? own : others;
}

}  // namespace

banyan::ckpt::client& banyan::ckpt::client_of(bck_state* state) { return state ? *state : the_client(); }
using banyan::ckpt::client_of;

extern "C" {

int bck_init(const char* job, int rank, int world) {
    return report([&] {
        for (auto* s : the_states().all()) s->finalize(false);
        return the_client().init(job, rank, world);
    });
}

int bck_state_protect(bck_state* state, const char* name, void* ptr, size_t bytes, const char* dtype,
                      const uint64_t* shape, int ndim) {
    return report([&] {
        return client_of(state).protect({name, ptr, bytes, dtype, ndim, shape, nullptr, nullptr});
    });
}

int bck_protect(const char* name, void* ptr, size_t bytes, const char* dtype, const uint64_t* shape,
                int ndim) {
    return bck_state_protect(nullptr, name, ptr, bytes, dtype, shape, ndim);
}

int bck_state_protect_bytes(bck_state* state, const char* name, void* ptr, size_t bytes) {
    const uint64_t extent = bytes;
    return report([&] {
        return client_of(state).protect({name, ptr, bytes, "U8", 1, &extent, nullptr, nullptr});
    });
}

int bck_protect_bytes(const char* name, void* ptr, size_t bytes) {
    return bck_state_protect_bytes(nullptr, name, ptr, bytes);
}

int bck_state_protect_piece(bck_state* state, const char* name, void* ptr, size_t bytes, const char* dtype,
                            const uint64_t* shape, int ndim, const uint64_t* global_shape,
                            const uint64_t* offset) {
    return report([&]() -> banyan::ckpt::outcome {
        if (!global_shape || !offset)
            return {BCK_E_INVALID,
                    "region \"" + std::string(name ? name : "") + "\": global_shape or offset is NULL"};
        return client_of(state).protect({name, ptr, bytes, dtype, ndim, shape, global_shape, offset});
    });
}

int bck_protect_piece(const char* name, void* ptr, size_t bytes, const char* dtype, const uint64_t* shape,
                      int ndim, const uint64_t* global_shape, const uint64_t* offset) {
    return bck_state_protect_piece(nullptr, name, ptr, bytes, dtype, shape, ndim, global_shape, offset);
}

int bck_state_unprotect(bck_state* state, const char* name) {
    return report([&] { return client_of(state).unprotect(name); });
}

int bck_unprotect(const char* name) { return bck_state_unprotect(nullptr, name); }

int bck_state_stat(bck_state* state, bck_contents** contents) {
    return report([&]() -> banyan::ckpt::outcome {
        if (!contents) return {BCK_E_INVALID, "contents is NULL"};
        *contents = nullptr;
        banyan::ckpt::image_contents found;
        if (auto r = client_of(state).stat(&found); r.code != 0) return r;
        *contents = new bck_contents(std::move(found));
        return {};
    });
}

int bck_stat(bck_contents** contents) { return bck_state_stat(nullptr, contents); }

bck_state* bck_open(const char* name) {
    bck_state* opened = nullptr;
    report([&]() -> banyan::ckpt::outcome {
        if (!name) return {BCK_E_INVALID, "name is NULL"};
        if (const auto good = banyan::ckpt::check_state_name(name); !good)
            return {BCK_E_INVALID, good.error().text()};
        auto* const state = the_states().of(name);
        if (!state)
            return {BCK_E_INVALID,
                    "a job may have four states with names, and this process has opened four; "
                    "save it as part of one of these: bck_checkpoint_of"};
        auto done = state->open(the_client(), name);
        if (done.code == 0) opened = state;
        return done;
    });
    return opened;
}

int bck_state_checkpoint(bck_state* state, uint64_t step) {
    return report([&] { return client_of(state).checkpoint(step, {}); });
}

int bck_checkpoint(uint64_t step) { return bck_state_checkpoint(nullptr, step); }

int bck_state_checkpoint_of(bck_state* state, uint64_t step, const bck_tensor* tensors, size_t count) {
    return report([&] { return client_of(state).checkpoint(step, std::span(tensors, count)); });
}

int bck_checkpoint_of(uint64_t step, const bck_tensor* tensors, size_t count) {
    return bck_state_checkpoint_of(nullptr, step, tensors, count);
}

int bck_state_checkpoint_begin(bck_state* state, uint64_t step, const bck_tensor* tensors, size_t count,
                               void* stream) {
    return report([&] { return client_of(state).begin(step, given_or_protected(tensors, count), stream); });
}

int bck_checkpoint_begin(uint64_t step, const bck_tensor* tensors, size_t count, void* stream) {
    return bck_state_checkpoint_begin(nullptr, step, tensors, count, stream);
}

int bck_state_checkpoint_end(bck_state* state) {
    return report([&] { return client_of(state).end(); });
}

int bck_checkpoint_end(void) { return bck_state_checkpoint_end(nullptr); }

int bck_seal_requested(void) {
    return banyan::guarded(
        "bck_seal_requested", [] { return 0; }, [] { return the_client().seal_requested() ? 1 : 0; });
}

void bck_heartbeat(uint64_t step, uint32_t phase) {
    banyan::guarded(
        "bck_heartbeat", [] {}, [&] { the_client().heartbeat(step, phase); });
}

int bck_state_milestone(bck_state* state, uint64_t step, const char* name) {
    return report([&] { return client_of(state).milestone(step, name); });
}

int bck_milestone(uint64_t step, const char* name) { return bck_state_milestone(nullptr, step, name); }

int bck_state_wait(bck_state* state, uint64_t step, int level, int timeout_ms) {
    return report([&] { return client_of(state).wait(step, level, timeout_ms); });
}

int bck_wait(uint64_t step, int level, int timeout_ms) {
    return bck_state_wait(nullptr, step, level, timeout_ms);
}

int bck_state_reserve(bck_state* state, const bck_tensor* tensors, size_t count) {
    return report([&] { return client_of(state).reserve(given_or_protected(tensors, count)); });
}

int bck_reserve(const bck_tensor* tensors, size_t count) {
    return bck_state_reserve(nullptr, tensors, count);
}

int bck_state_restart_query(bck_state* state, uint64_t* step) {
    return report([&] { return client_of(state).restart_query(step); });
}

int bck_restart_query(uint64_t* step) { return bck_state_restart_query(nullptr, step); }

int bck_state_restart(bck_state* state, uint64_t* step, int* source) {
    return report([&] { return client_of(state).restart(step, source, {}); });
}

int bck_restart(uint64_t* step, int* source) { return bck_state_restart(nullptr, step, source); }

int bck_state_restart_into(bck_state* state, uint64_t* step, int* source, const bck_tensor* tensors,
                           size_t count) {
    return report([&] { return client_of(state).restart(step, source, std::span(tensors, count)); });
}

int bck_restart_into(uint64_t* step, int* source, const bck_tensor* tensors, size_t count) {
    return bck_state_restart_into(nullptr, step, source, tensors, count);
}

int bck_finalize(int drain) {
    return report([&] { return finalize(the_states().all(), 0, drain != 0); });
}

const char* bck_error(void) { return last_error.c_str(); }

const char* bck_version(void) { return BANYAN_LIBRARY_VERSION; }

int bck_has_cuda(void) {
    return banyan::guarded(
        "bck_has_cuda", [] { return 0; }, [] { return banyan::ckpt::device::has_driver() ? 1 : 0; });
}
}
