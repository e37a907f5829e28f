// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "supervisor/failure.hpp"

namespace test_failure {

using namespace banyan::supervisor;

namespace {

struct row {
    const char* type;
    const char* text;
    blame whose;
};

const row rows[] = {
    {"NameError", "name 'undefined_name' is not defined", blame::code},
    {"AttributeError", "'DistributedDataParallel' object has no attribute 'foo'", blame::code},
    {"TypeError", "init_process_group() got an unexpected keyword argument 'timeouts'", blame::code},
    {"ModuleNotFoundError", "No module named 'nosuch'", blame::code},
    {"AssertionError", "", blame::code},
    {"KeyError", "'lr'", blame::code},
    {"mypackage.NameError", "one of its own", blame::program},
    {"ValueError", "Expected parameter loc of distribution Normal", blame::program},
    {"RuntimeError", "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)", blame::program},
    {"FileNotFoundError", "[Errno 2] No such file or directory: 'data'", blame::program},
    {"MemoryError", "", blame::program},
    {"torch.OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.", blame::program},
    {"RuntimeError", "CUDA out of memory. Tried to allocate 20.00 MiB", blame::program},
    {"mypackage.MyError", "it is not what it was", blame::program},
    {"RuntimeError", "CUDA error: an illegal memory access was encountered", blame::device},
    {"torch.AcceleratorError", "CUDA error: unspecified launch failure", blame::device},
    {"RuntimeError", "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED", blame::device},
    {"RuntimeError", "cuDNN error: CUDNN_STATUS_MAPPING_ERROR", blame::device},
    {"RuntimeError", "No CUDA GPUs are available", blame::device},
    {"RuntimeError", "CUDA error: uncorrectable ECC error encountered", blame::device},
    {"ImportError", "libcudart.so.12: cannot open shared object file: No such file or directory",
     blame::device},
    {"OSError", "[Errno 5] Input/output error", blame::device},
    {"OSError", "[Errno 116] Stale file handle: 'data'", blame::device},
    {"torch.distributed.DistBackendError", "NCCL error in: ProcessGroupNCCL.cpp:1", blame::peer},
    {"torch.distributed.DistNetworkError", "failed to recv, got 0 bytes", blame::peer},
    {"torch.distributed.DistStoreError", "wait timeout after 300000ms", blame::peer},
    {"torch.distributed.elastic.rendezvous.api.RendezvousConnectionError", "", blame::peer},
    {"RuntimeError", "[gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:1", blame::peer},
    {"ConnectionResetError", "[Errno 104] Connection reset by peer", blame::peer},
    {"BrokenPipeError", "[Errno 32] Broken pipe", blame::peer},
    {"TimeoutError", "", blame::peer},
    {"torch.distributed.elastic.multiprocessing.errors.ChildFailedError", "", blame::nobody},
    {"torch.distributed.elastic.multiprocessing.api.SignalException", "Process 1 got signal: 15",
     blame::nobody},
};

}  // namespace

TEST_CASE("whom an exception accuses", "[supervisor]") {
    for (const auto& r : rows) {
        INFO(r.type << ": " << r.text);
        CHECK(blame_of(r.type, r.text) == r.whose);
    }
}

}  // namespace test_failure
