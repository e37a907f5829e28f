// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions: nothing throws out of them, every failure leaves its words for bck_error().
#include <exception>
#include <new>

#include <banyan/ckpt.h>

#include "ckptd/client/client.hpp"

namespace {

thread_local std::string last_error;

banyan::ckpt::client& the_client() {
    static auto* const c =
        new banyan::ckpt::client;  // never destroyed: other threads may save while the process ends
    return *c;
}

template <class Body>
int report(Body&& body) noexcept {
    try {
        auto done = body();
        last_error = std::move(done.text);
        return done.code;
    } catch (const std::exception& e) {
        try {
            last_error = e.what();
        } catch (...) {
            last_error.clear();
        }
        return BCK_E_MEMORY;
    } catch (...) {
        return BCK_E_MEMORY;
    }
}

}  // namespace

extern "C" {

int bck_init(const char* job, int rank, int world) {
    return report([&] { return the_client().init(job, rank, world); });
}

int bck_protect(const char* name, void* ptr, size_t bytes, const char* dtype, const uint64_t* shape,
                int ndim) {
    return report([&] { return the_client().protect(name, ptr, bytes, dtype, shape, ndim); });
}

int bck_protect_bytes(const char* name, void* ptr, size_t bytes) {
    const uint64_t extent = bytes;
    return report([&] { return the_client().protect(name, ptr, bytes, "U8", &extent, 1); });
}

int bck_checkpoint(uint64_t step) {
    return report([&] { return the_client().checkpoint(step); });
}

int bck_wait(uint64_t step, int level, int timeout_ms) {
    return report([&] { return the_client().wait(step, level, timeout_ms); });
}

int bck_restart_test(uint64_t* step) {
    return report([&] { return the_client().restart_test(step); });
}

int bck_restart(uint64_t* step, int* source) {
    return report([&] { return the_client().restart(step, source); });
}

int bck_finalize(int drain) {
    return report([&] { return the_client().finalize(drain != 0); });
}

const char* bck_error(void) { return last_error.c_str(); }
}
