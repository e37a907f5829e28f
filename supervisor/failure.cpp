// SPDX-License-Identifier: BSD-3-Clause
//
// The table. Where it is not clear whose an error is, it is a device's or a peer's: then the step is started
// again.
#include "supervisor/failure.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

namespace banyan::supervisor {
namespace {

using words = std::string_view;

// Launchers' errors: the process that ended has printed its own, if it had one.
constexpr words of_nobody[] = {"ChildFailedError", "ProcessRaisedException", "SignalException"};

// The program took too much of the GPU's memory.
constexpr words of_program[] = {"OutOfMemoryError", "CUDA out of memory", "HIP out of memory"};

// A GPU, or a node whose storage or drivers are not what they are on the others.
constexpr words of_device[] = {
    "CUDA error",
    "CUDA driver",
    "CUDA_ERROR",
    "CUDA unknown error",
    "CUDA GPUs",
    "CUDA-capable",
    "HIP error",
    "AcceleratorError",
    "CUBLAS",
    "CUDNN",
    "cuDNN",
    "CUFFT",
    "CUSOLVER",
    "CUSPARSE",
    "NVIDIA",
    "NVML",
    "ECC",
    "INTERNAL:",
    "Input/output error",
    "Stale file handle",
    "Transport endpoint",
    "cannot open shared object file",
    "illegal memory access",
    "cudaError",
    "[CUDA]",
    "with CUDA enabled",
    "libcuda",
    "Invalid device id",
    "nvidia-smi",
    "Bus error",
    "No space left",
    "Resource temporarily unavailable",
    "start new thread",
};

constexpr words of_code[] = {
    "NameError",         "UnboundLocalError",   "SyntaxError",    "IndentationError",
    "TabError",          "TypeError",           "AttributeError", "ImportError",
    "KeyError",          "IndexError",          "AssertionError", "ModuleNotFoundError",
    "ZeroDivisionError", "NotImplementedError",
};

// Whatever the type: an assertion may repeat them.
constexpr words of_lost_peer[] = {
    "Connection closed by", "Connection reset by", "Connection refused", "Broken pipe", "Socket closed",
};

constexpr words of_peer[] = {
    "torch.distributed.Dist",
    "NCCL",
    "gloo",
    "TCPStore",
    "Rendezvous",
    "ConnectionError",
    "ConnectionReset",
    "ConnectionRefused",
    "ConnectionAborted",
    "BrokenPipe",
    "Connection closed",
    "Connection reset",
    "SSL",
    "couldn't connect",
    "TimeoutError",
    "timed out",
    "Timed out",
    "timeout",
    "Timeout",
    "No route to host",
    "UNAVAILABLE:",
    "ABORTED:",
    "DEADLINE_EXCEEDED:",
    "HorovodInternalError",
    "ProcessExitedException",
    "banyan_ckpt",
};

}  // namespace

blame blame_of(std::string_view type, std::string_view text) {
    const auto whole = fmt::format("{}: {}", type, text);
    const auto has_one = [&](std::span<const words> of) {
        return std::ranges::any_of(of, [&](words w) { return whole.find(w) != whole.npos; });
    };
    if (has_one(of_nobody)) return blame::nobody;
    if (has_one(of_program)) return blame::program;
    if (has_one(of_device)) return blame::device;
    if (has_one(of_lost_peer)) return blame::peer;
    // Before the peers' other words: an argument may have the name "timeout".
    if (std::ranges::find(of_code, type) != std::end(of_code)) return blame::code;
    return has_one(of_peer) ? blame::peer : blame::program;
}

}  // namespace banyan::supervisor
