// SPDX-License-Identifier: BSD-3-Clause
//
// libnccl, as far as banyan calls it: sums of floats over the GPUs of one process. Rules are of NCCL's user
// guide: Group Calls, Collective Operations, Thread Safety.
#include <cstring>
#include <deque>
#include <memory>
#include <utility>

#include <unistd.h>

#include "mock.hpp"

namespace {

using namespace mock;

struct communicator {
    int gpu = 0, of = 0;
};
struct reduction {
    const communicator* by;
    const float* in;
    float* out;
    block* into;
    std::size_t count;
    stream* on;
};
std::deque<communicator> communicators;
std::vector<reduction> group;
bool grouped = false;

const float* content(const void* at, std::size_t count, int gpu) {
    auto& b = find_block(at, count * sizeof(float), gpu);
    must(reinterpret_cast<std::uintptr_t>(at) % sizeof(float) == 0, "a float lies at a multiple of 4",
         "CUDA programming guide");
    return reinterpret_cast<const float*>(b.content + (reinterpret_cast<std::uintptr_t>(at) - b.at));
}

const communicator& find_communicator(const void* handle) {
    for (const auto& c : communicators)
        if (&c == handle) return c;
    broken("there is no such communicator", "NCCL, Communicator Creation: ncclCommInitAll");
}

/// What the GPUs would have summed up, which is there once somebody has waited for their streams.
void enqueue(const std::vector<reduction>& all) {
    const auto count = all.front().count;
    auto sums = std::make_shared<std::vector<float>>(count);
    for (const auto& r : all) {
        for (std::size_t i = 0; i < count; ++i) (*sums)[i] += r.in[i];
    }
    for (const auto& r : all) {
        r.into->in_flight = true;
        const bool wrong = is("sum") && &r == &all.back();
        r.on->queued.emplace_back([r, sums, count, wrong] {
            std::memcpy(r.out, sums->data(), count * sizeof(float));
            if (wrong) r.out[count - 1] += 1;
            r.into->in_flight = false;
        });
    }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int ncclCommInitAll(void** comms, int count, const int* order) {
    const auto lock = turn();
    for (int n = 0; n < count; ++n) {
        must(order[n] >= 0 && order[n] < gpus(), "there is no GPU of that number", "NCCL, ncclCommInitAll");
        communicators.push_back({order[n], count});
        comms[n] = &communicators.back();
    }
    return 0;
}
int ncclGroupStart() {
    const auto lock = turn();
    must(!std::exchange(grouped, true), "a group is open already", "NCCL, Group Calls: ncclGroupStart");
    return group.clear(), 0;
}
int ncclAllReduce(const void* in, void* out, std::size_t count, int type, int operation, void* comm,
                  void* on) {
    const auto lock = turn();
    const auto& by = find_communicator(comm);
    must(grouped, "a thread that has several GPUs calls within a group", "NCCL, Group Calls");
    must(type == 7 && operation == 0, "the mock knows sums of floats only", "this file");
    auto& into = find_block(out, count * sizeof(float), by.gpu);
    group.push_back({&by, content(in, count, by.gpu), const_cast<float*>(content(out, count, by.gpu)), &into,
                     count, &find_stream(on, by.gpu)});
    return 0;
}
int ncclGroupEnd() {
    if (is("reduce-hang"))
        for (;;) ::pause();
    const auto lock = turn();
    must(std::exchange(grouped, false), "no group is open", "NCCL, Group Calls: ncclGroupEnd");
    must(!group.empty() && group.size() == static_cast<std::size_t>(group.front().by->of),
         "every rank takes part in a collective, or all wait for ever", "NCCL, Collective Operations");
    for (const auto& r : group)
        must(r.count == group.front().count, "the ranks have different counts",
             "NCCL, Collective Operations");
    if (is("reduce-error")) return 2;
    return enqueue(group), 0;
}
int ncclGetVersion(int* version) { return *version = 22803, 0; }  // needs neither driver nor GPU
const char* ncclGetErrorString(int) { return "unhandled system error"; }
}
#pragma GCC visibility pop
