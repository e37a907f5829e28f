// SPDX-License-Identifier: BSD-3-Clause
#include "native/library.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

#include <dlfcn.h>
#include <nanobind/nanobind.h>
#include <sys/mman.h>
#include <unistd.h>

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

/// Where the folder is mounted noexec, as /run is on Debian: a copy in memory can be loaded all the same.
/// NULL where the file cannot be read.
void* open_copy(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes(std::istreambuf_iterator<char>(file), {});
    if (bytes.empty()) return nullptr;
    const int copy = ::memfd_create("libbanyan_ckpt", MFD_CLOEXEC);
    if (copy < 0) return nullptr;
    void* handle = nullptr;
    if (::write(copy, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()))
        handle = ::dlopen(("/proc/self/fd/" + std::to_string(copy)).c_str(), RTLD_NOW | RTLD_LOCAL);
    ::close(copy);
    return handle;
}

/// "0.1" of "0.1.0": releases that differ only in the last number fit.
std::string_view series(std::string_view version) { return version.substr(0, version.rfind('.')); }

}  // namespace

void open_library(const std::string& path) {
    if (is_open) return;
    void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const std::string why = ::dlerror();
        handle = open_copy(path);
        if (!handle) refuse(path, why);
    }
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
