// SPDX-License-Identifier: BSD-3-Clause
//
// Preloaded into a daemon: counts the bytes that it has summed up by ISA-L's CRC-32C, in the file
// $BANYAN_COUNT_CRC_IN/PID (one 64-bit number).
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using count = std::atomic<std::uint64_t>;
static_assert(count::is_always_lock_free);

count* counter() {
    static count none;
    static count* const here = [] {
        const char* dir = std::getenv("BANYAN_COUNT_CRC_IN");
        if (!dir) return &none;
        const auto path = std::string(dir) + "/" + std::to_string(::getpid());
        const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0 || ::ftruncate(fd, sizeof(count)) != 0) return &none;
        void* at = ::mmap(nullptr, sizeof(count), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ::close(fd);
        return at == MAP_FAILED ? &none : static_cast<count*>(at);
    }();
    return here;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) unsigned crc32_iscsi(unsigned char* bytes, int size,
                                                                       unsigned crc) {
    using function = unsigned (*)(unsigned char*, int, unsigned);
    static const auto real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "crc32_iscsi"));
    *counter() += static_cast<std::uint64_t>(size);
    return real(bytes, size, crc);
}
