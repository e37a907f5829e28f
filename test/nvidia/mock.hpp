// SPDX-License-Identifier: BSD-3-Clause
//
// A mock of libcuda and libnccl for nodes without a GPU. Whoever breaks a rule of the real libraries is ended
// at once, and told which rule: it is a bug of the caller, which a real GPU would answer with an error, with
// other numbers or with a crash. BANYAN_MOCK_GPUS says how many GPUs there are, BANYAN_MOCK what is wrong:
// hang, crash, copy, sum, slow, ecc (GPU 1), none, reduce-hang, reduce-error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "host_memory.hpp"

namespace mock {

using code = int;
constexpr code success = 0, invalid_value = 1, not_initialized = 3, no_device = 100, ecc_uncorrectable = 214;

/// BANYAN_MOCK is `what`.
bool is(std::string_view what);
int gpus();

/// Ends the process: `rule` was not kept, which `source` says.
[[noreturn]] void broken(const char* rule, const char* source);
inline void must(bool kept, const char* rule, const char* source) {
    if (!kept) broken(rule, source);
}

/// One thread at a time; every function of the two libraries takes it.
std::unique_lock<std::mutex> turn();

/// Memory of a GPU. Its address is one at which this process has nothing: only copies reach it.
struct block {
    std::uintptr_t at = 0;
    std::size_t bytes = 0;
    int gpu = 0;
    bool pooled = false;     ///< of no context
    bool in_flight = false;  ///< a stream that was not waited for writes it
    std::byte* content = nullptr;

    bool has(std::uintptr_t p, std::size_t n) const { return p >= at && n <= bytes && p - at <= bytes - n; }
};
/// The memory of `gpu` that has all of that; ends the process where there is none.
block& find_block(const void* at, std::size_t bytes, int gpu);

/// Work that is done when somebody waits for it.
struct stream {
    int gpu = 0;
    std::vector<std::function<void()>> queued{};
    bool ended = false;
    /// Does the first of it; all where that is not said.
    void work(std::size_t most = SIZE_MAX);
};
/// The work that a stream had when it was recorded.
struct event {
    int gpu = 0;
    stream* on = nullptr;
    std::size_t behind = 0;
    bool ended = false;
};
struct everything {
    std::mutex turn;
    bool initialized = false;
    std::map<int, int> retained;  ///< how often, by GPU
    std::deque<block> blocks;
    std::deque<stream> streams;
    std::map<int, stream> defaults;  ///< by GPU
    std::deque<event> events;
    host_memory host;
};
everything& all();
/// Of the calling thread: the GPU's number and one; 0: it has none.
inline thread_local long current = 0;

/// Ends the process where it is none of `gpu`; null: its default stream.
stream& find_stream(void* handle, int gpu);
event& find_event(void* handle, int gpu);

/// The GPU of the calling thread's context; ends the process where it has none.
int current_gpu();

}  // namespace mock
