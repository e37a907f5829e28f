// SPDX-License-Identifier: BSD-3-Clause
//
// Stands for libibverbs, and is named a mock: MOCK_VERBS is a folder with a FIFO for each device, into which
// a test writes events as two ints, type and port. A device whose file is no FIFO cannot be opened.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#undef ibv_get_device_list

#define MOCK extern "C" __attribute__((visibility("default")))

namespace {

std::filesystem::path folder() { return std::getenv("MOCK_VERBS"); }

}  // namespace

MOCK ibv_device** ibv_get_device_list(int* count) {
    std::vector<std::string> names;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator(folder(), failed))
        names.push_back(entry.path().filename().string());
    if (failed) {
        errno = ENOSYS;  // as without the kernel's module
        return nullptr;
    }
    auto** out = new ibv_device*[names.size() + 1]();
    for (std::size_t n = 0; n < names.size(); ++n) {
        out[n] = new ibv_device{};
        std::snprintf(out[n]->name, sizeof out[n]->name, "%s", names[n].c_str());
    }
    *count = static_cast<int>(names.size());
    return out;
}

MOCK void ibv_free_device_list(ibv_device** list) {
    for (auto** one = list; *one; ++one) delete *one;
    delete[] list;
}

MOCK ibv_context* ibv_open_device(ibv_device* device) {
    const auto path = folder() / device->name;
    if (!std::filesystem::is_fifo(path)) {
        errno = EACCES;
        return nullptr;
    }
    auto* out = new ibv_context{};
    out->async_fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    return out;
}

MOCK int ibv_close_device(ibv_context* context) {
    ::close(context->async_fd);
    delete context;
    return 0;
}

MOCK int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
    int told[2] = {};
    if (::read(context->async_fd, told, sizeof told) != sizeof told) return -1;
    event->event_type = static_cast<ibv_event_type>(told[0]);
    event->element.port_num = told[1];
    return 0;
}

MOCK void ibv_ack_async_event(ibv_async_event*) {}
