// SPDX-License-Identifier: BSD-3-Clause
//
// CUDA's driver, as far as the library uses it. The few functions and numbers are those of cuda.h, which
// keeps them: the library is built, and serves, wherever there is no CUDA.
#pragma once

#include <cstddef>

#include "common/result.hpp"

namespace banyan::ckpt::device {

using code = int;
using address = unsigned long long;
using context = void*;

constexpr code success = 0;

struct driver {
    code (*attribute)(void*, int, address) = nullptr;
    code (*to_host)(void*, address, std::size_t) = nullptr;
    code (*to_host_on)(void*, address, std::size_t, void* stream) = nullptr;
    code (*to_device)(address, const void*, std::size_t) = nullptr;
    code (*pin)(void*, std::size_t, unsigned) = nullptr;
    code (*unpin)(void*) = nullptr;
    code (*current)(context*) = nullptr;
    code (*use)(context) = nullptr;
    code (*synchronize)() = nullptr;
    code (*device)(int*, int) = nullptr;
    code (*retain)(context*, int) = nullptr;
    code (*release)(int) = nullptr;
    code (*make_stream)(void**, unsigned) = nullptr;
    code (*end_stream)(void*) = nullptr;
    code (*wait_for_stream)(void*) = nullptr;
    code (*let_wait)(void* stream, void* event, unsigned) = nullptr;
    code (*make_event)(void**, unsigned) = nullptr;
    code (*end_event)(void*) = nullptr;
    code (*record)(void* event, void* stream) = nullptr;
    bool usable = false;

    /// The driver that the process has loaded, if any.
    static driver find();
};

/// Looked for again when the process has loaded another library since. Thread-safe.
driver cuda();

inline address address_of(const void* ptr) { return reinterpret_cast<address>(ptr); }

/// A context that has the memory, for the length of one call: the calling thread may have another one, or
/// none. Memory of a pool, or mapped by the program, belongs to no context: its GPU's own one has it.
class in_context_of {
  public:
    in_context_of(const driver& by, const void* gpu);
    ~in_context_of();
    in_context_of(const in_context_of&) = delete;
    context which() const { return context_; }

  private:
    void retain(const void* gpu);

    const driver& by_;
    context before_ = nullptr, context_ = nullptr;
    int device_ = 0;
    bool retained_ = false;
};

/// `what`: "from" or "to".
result<void> checked(code r, const char* what, std::size_t bytes);

}  // namespace banyan::ckpt::device
