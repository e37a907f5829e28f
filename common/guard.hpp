// SPDX-License-Identifier: BSD-3-Clause
//
// The one guard at every C edge: nothing throws into Slurm. Each extern "C" entry point of a plugin is
//     return guarded("select_p_job_test", fallback, [&] { ... });
// where `fallback` is called without arguments when our code throws, and gives Slurm's own behaviour.
#pragma once

#include <cstdio>
#include <exception>
#include <utility>

namespace banyan {

/// Receives what a guard caught; set once by each plugin to Slurm's logger. Must not throw. `what` is cut at
/// 511 bytes.
using guard_log = void (*)(const char* entry, const char* what);
inline guard_log guard_sink = [](const char* entry, const char* what) {
    std::fprintf(stderr, "banyan: %s: %s\n", entry, what);
};

/// Runs `body`; when it throws, reports through guard_sink and returns `fallback()` instead. Thread-safe.
template <class Fallback, class Body>
auto guarded(const char* entry, Fallback&& fallback, Body&& body) noexcept -> decltype(body()) {
    char text[512];
    try {
        return std::forward<Body>(body)();
    } catch (const std::exception& e) {
        std::snprintf(text, sizeof text, "%s", e.what());
    } catch (...) {
        std::snprintf(text, sizeof text, "an exception of unknown type");
    }
    guard_sink(entry, text);
    return std::forward<Fallback>(fallback)();
}

}  // namespace banyan
