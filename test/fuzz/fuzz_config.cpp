// SPDX-License-Identifier: BSD-3-Clause
//
// banyan.conf, as each part reads its tables. Read from memory: a descriptor stands for the file.
#include <sys/mman.h>
#include <unistd.h>

#include "ckptd/daemon/settings.hpp"
#include "common/config.hpp"
#include "fault/config.hpp"
#include "sweep/settings.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const int file = ::memfd_create("banyan.conf", MFD_CLOEXEC);
    static const auto path = "/proc/self/fd/" + std::to_string(file);
    fuzz::must(::ftruncate(file, 0) == 0 && ::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));
    if (const auto settings = ckpt::load_settings(path, "n01")) (void)ckpt::dump_settings(*settings);
    if (const auto config = fault::load_config(path, "n01")) (void)config->dump();
    (void)sweep::load_settings(path, "n01");
    return 0;
}
