// SPDX-License-Identifier: BSD-3-Clause
//
// The mock of libcuda as a test uses it: what the program under test would have done with a real one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <dlfcn.h>

namespace banyan::testing {

class driver {
  public:
    /// Loaded from the mock's file, started, and GPU `gpu` in use by this thread.
    explicit driver(const std::string& file, int gpu = 0)
        : library_(::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (!library_) throw std::runtime_error(::dlerror());
        call("cuInit", 0u);
        use(gpu);
    }

    template <class... Words>
    int call(const char* name, Words... words) const {
        auto* const f = reinterpret_cast<int (*)(Words...)>(::dlsym(library_, name));
        if (!f) throw std::runtime_error(name);
        return f(words...);
    }
    /// By this thread; -1: none.
    void use(int gpu) const {
        void* context = nullptr;
        if (gpu >= 0) call("cuDevicePrimaryCtxRetain", &context, gpu);
        call("cuCtxSetCurrent", context);
    }
    void* allocate(std::size_t bytes) const {
        unsigned long long out = 0;
        call("cuMemAlloc_v2", &out, bytes);
        return reinterpret_cast<void*>(out);
    }
    /// Of a pool, as PyTorch's other allocators have it.
    void* allocate_pooled(std::size_t bytes) const {
        unsigned long long out = 0;
        call("cuMemAllocAsync", &out, bytes, static_cast<void*>(nullptr));
        return reinterpret_cast<void*>(out);
    }
    void put(void* gpu, const std::vector<unsigned char>& content) const {
        call("cuMemcpyHtoD_v2", reinterpret_cast<unsigned long long>(gpu),
             static_cast<const void*>(content.data()), content.size());
    }
    std::vector<unsigned char> get(void* gpu, std::size_t bytes) const {
        std::vector<unsigned char> out(bytes);
        call("cuMemcpyDtoH_v2", static_cast<void*>(out.data()), reinterpret_cast<unsigned long long>(gpu),
             bytes);
        return out;
    }
    void* stream() const {
        void* out = nullptr;
        call("cuStreamCreate", &out, 1u);
        return out;
    }
    /// Queued on the stream (null: the default one), and done when somebody waits for that.
    void fill_on(void* stream, void* gpu, unsigned char with, std::size_t bytes) const {
        call("cuMemsetD8Async", reinterpret_cast<unsigned long long>(gpu), with, bytes, stream);
    }

  private:
    void* library_;
};

}  // namespace banyan::testing
