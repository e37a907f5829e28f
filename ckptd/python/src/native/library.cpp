// SPDX-License-Identifier: BSD-3-Clause
#include "native/library.hpp"

#include <stdexcept>
#include <string_view>

#include <dlfcn.h>
#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace banyan::python {
namespace {

library opened;
bool is_open = false;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw nb::import_error(("banyan_ckpt cannot use " + path + ": " + why).c_str());
}

template <class Function>
bool find(void* handle, const char* name, Function& into) {
    into = reinterpret_cast<Function>(::dlsym(handle, name));
    return into != nullptr;
}

/// "0.1" of "0.1.0": releases that differ only in the last number fit.
std::string_view series(std::string_view version) { return version.substr(0, version.rfind('.')); }

}  // namespace

void open_library(const std::string& path) {
    if (is_open) return;
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) refuse(path, ::dlerror());
    library found;
#define BANYAN_CKPT_FIND(name)            \
    if (!find(handle, #name, found.name)) \
        refuse(path, "it has no " #name ", so it is another release than this package");
    BANYAN_CKPT_NEEDED(BANYAN_CKPT_FIND)
#undef BANYAN_CKPT_FIND
    if (const std::string_view version = found.bck_version(); series(version) != series(BANYAN_CKPT_VERSION))
        refuse(path, "it is release " + std::string(version) +
                         ", the package is " BANYAN_CKPT_VERSION ": install the package of that release");
    opened = found;
    is_open = true;
}

const library& lib() {
    if (!is_open) throw std::runtime_error("libbanyan_ckpt is not open: call banyan_ckpt.init() first");
    return opened;
}

answer answer_of(int code) { return {code, code == 0 ? std::string() : std::string(lib().bck_error())}; }

}  // namespace banyan::python
