// SPDX-License-Identifier: BSD-3-Clause
//
// Functions of a library that was loaded with dlopen.
#pragma once

#include <dlfcn.h>

namespace banyan::hardware {

/// False where it has none of that name.
template <class F>
bool find_function(void* library, const char* name, F*& into) {
    into = reinterpret_cast<F*>(::dlsym(library, name));
    return into != nullptr;
}

}  // namespace banyan::hardware
