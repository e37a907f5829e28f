// SPDX-License-Identifier: BSD-3-Clause
//
// Stands for the driver of a GPU whose copies fail: one range of this process's memory is "on" it.
#include <cstddef>
#include <cstdint>

#include <cuda.h>

namespace {

std::uintptr_t first = 0, last = 0;

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

/// Called by the test; nothing is on the GPU where `bytes` is 0.
void put_on_gpu(const void* at, std::size_t bytes) {
    first = reinterpret_cast<std::uintptr_t>(at);
    last = first + bytes;
}

CUresult CUDAAPI cuPointerGetAttribute(void* out, CUpointer_attribute what, CUdeviceptr ptr) {
    if (ptr < first || ptr >= last || what != CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
        return CUDA_ERROR_INVALID_VALUE;
    *static_cast<unsigned*>(out) = CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
}

CUresult CUDAAPI cuMemcpyDtoH(void*, CUdeviceptr, std::size_t) { return CUDA_ERROR_ECC_UNCORRECTABLE; }
CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr, const void*, std::size_t) { return CUDA_ERROR_ECC_UNCORRECTABLE; }
CUresult CUDAAPI cuMemHostRegister(void*, std::size_t, unsigned) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuMemHostUnregister(void*) { return CUDA_SUCCESS; }
CUresult CUDAAPI cuCtxGetCurrent(CUcontext* out) {
    *out = nullptr;
    return CUDA_SUCCESS;
}
CUresult CUDAAPI cuCtxSetCurrent(CUcontext) { return CUDA_SUCCESS; }
}
#pragma GCC visibility pop
