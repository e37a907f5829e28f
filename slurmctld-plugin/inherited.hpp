// SPDX-License-Identifier: GPL-2.0-or-later
//
// What select/cons_tres has and we inherit through ELF (see CMakeLists.txt).
#pragma once

#include <dlfcn.h>

namespace banyan::slurm {

/// The function, or a pointer to the variable, of this name in select/cons_tres; null only when the plugin
/// was linked without it, or the release has none.
template <class T>
T* inherited(const char* name) {
    return reinterpret_cast<T*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace banyan::slurm
