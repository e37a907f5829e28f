// SPDX-License-Identifier: BSD-3-Clause
//
// What the functions of the mock share.
#include "mock.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace mock {

everything& all() {
    static auto* const one = new everything;  // of use until the process is gone
    return *one;
}

bool is(std::string_view what) {
    const char* set = std::getenv("BANYAN_MOCK");
    return set && what == set;
}

int gpus() {
    const char* set = std::getenv("BANYAN_MOCK_GPUS");
    return set ? std::atoi(set) : 2;
}

void broken(const char* rule, const char* source) {
    std::fprintf(stderr, "mock of NVIDIA's libraries: %s (%s)\n", rule, source);
    std::abort();
}

std::unique_lock<std::mutex> turn() {
    must(all().initialized, "cuInit comes before every other function",
         "CUDA driver API, Initialization: cuInit");
    return std::unique_lock(all().turn);
}

int current_gpu() {
    must(current != 0, "the calling thread has no context", "CUDA driver API, CUDA_ERROR_INVALID_CONTEXT");
    return static_cast<int>(current - 1);
}

// CUDA driver API, Unified Addressing: an address names one allocation; what reaches out of it, or into that
// of another context, gets CUDA_ERROR_INVALID_VALUE or another program's numbers.
block& find_block(const void* at, std::size_t bytes, int gpu) {
    const auto p = reinterpret_cast<std::uintptr_t>(at);
    const auto it = std::ranges::find_if(all().blocks, [&](const block& b) { return b.has(p, bytes); });
    must(it != all().blocks.end(), "no memory of a GPU has all of these bytes",
         "CUDA driver API, Unified Addressing");
    must(it->gpu == gpu, "that memory is of another context", "CUDA driver API, Unified Addressing");
    return *it;
}

// What is queued may wait for other streams.
void stream::work(std::size_t most) {
    auto now = std::exchange(queued, {});
    most = std::min(most, now.size());
    const auto rest = now.begin() + static_cast<std::ptrdiff_t>(most);
    queued.assign(std::make_move_iterator(rest), std::make_move_iterator(now.end()));
    for (std::size_t i = 0; i < most; ++i) now[i]();
    for (auto& e : all().events)
        if (e.on == this) e.behind -= std::min(e.behind, most);
}

event& find_event(void* handle, int gpu) {
    auto& events = all().events;
    const auto it = std::ranges::find_if(events, [&](const event& e) { return &e == handle; });
    must(it != events.end() && !it->ended, "there is no such event",
         "CUDA driver API, CUDA_ERROR_INVALID_HANDLE");
    must(it->gpu == gpu, "that event is of another context", "CUDA driver API, Event Management");
    return *it;
}

stream& find_stream(void* handle, int gpu) {
    if (!handle) {
        auto& own = all().defaults[gpu];
        own.gpu = gpu;
        return own;
    }
    auto& streams = all().streams;
    const auto it = std::ranges::find_if(streams, [&](const stream& s) { return &s == handle; });
    must(it != streams.end() && !it->ended, "there is no such stream",
         "CUDA driver API, CUDA_ERROR_INVALID_HANDLE");
    must(it->gpu == gpu, "that stream is of another context", "CUDA driver API, Stream Management");
    return *it;
}

}  // namespace mock
