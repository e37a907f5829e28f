// SPDX-License-Identifier: BSD-3-Clause
#include "test/held_clock.hpp"

#include <new>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/fd.hpp"

namespace banyan::testing {

held_clock::held_clock(std::string path) : path_(std::move(path)) {
    const unique_fd file(::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    void* page = MAP_FAILED;
    if (file && ::ftruncate(file.get(), sizeof(clock::held)) == 0)
        page = ::mmap(nullptr, sizeof(clock::held), PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (page == MAP_FAILED) throw std::system_error(errno, std::generic_category(), path_);
    time_ = new (page) clock::held(clock::now().time_since_epoch().count());
    clock::follow(time_);
}

held_clock::~held_clock() {
    clock::follow(nullptr);
    ::munmap(time_, sizeof(clock::held));
    ::unlink(path_.c_str());
}

}  // namespace banyan::testing
