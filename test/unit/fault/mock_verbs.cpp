// SPDX-License-Identifier: BSD-3-Clause
//
// Stands for libibverbs, and is named a mock: MOCK_VERBS is a folder with a FIFO for each device, into which
// a test writes events as two ints, type and port. A device whose file is no FIFO cannot be opened. Devices
// are listed by their names. Whoever breaks a rule of the manual pages is ended, and told which.
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fcntl.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#undef ibv_get_device_list

#define MOCK extern "C" __attribute__((visibility("default")))

namespace {

std::filesystem::path folder() { return std::getenv("MOCK_VERBS"); }

void must(bool kept, const char* rule, const char* source) {
    if (kept) return;
    std::fprintf(stderr, "mock of libibverbs: %s (%s)\n", rule, source);
    std::abort();
}

std::set<ibv_device**> lists;
std::map<ibv_context*, int> contexts;  // how many of its events are not acknowledged
std::map<const ibv_async_event*, ibv_context*>
    got;  // where a caller has an event that it has not acknowledged

bool is_listed(const ibv_device* device) {
    return std::any_of(lists.begin(), lists.end(), [&](ibv_device** list) {
        for (; *list; ++list)
            if (*list == device) return true;
        return false;
    });
}

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
    std::sort(names.begin(), names.end());
    auto** out = new ibv_device*[names.size() + 1]();
    for (std::size_t n = 0; n < names.size(); ++n) {
        out[n] = new ibv_device{};
        std::snprintf(out[n]->name, sizeof out[n]->name, "%s", names[n].c_str());
    }
    if (count) *count = static_cast<int>(names.size());
    lists.insert(out);
    return out;
}

// "Once it frees the array ... pointers to unopened devices will no longer be valid."
MOCK void ibv_free_device_list(ibv_device** list) {
    must(lists.erase(list) == 1, "that list was not given out, or is freed", "ibv_get_device_list(3)");
    for (auto** one = list; *one; ++one) delete *one;
    delete[] list;
}

MOCK ibv_context* ibv_open_device(ibv_device* device) {
    must(is_listed(device), "a device is opened before its list is freed", "ibv_get_device_list(3)");
    const auto path = folder() / device->name;
    if (!std::filesystem::is_fifo(path)) {
        errno = EACCES;
        return nullptr;
    }
    auto* out = new ibv_context{};
    out->async_fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    contexts[out] = 0;
    return out;
}

// "All async events that ibv_get_async_event() returns must be acknowledged": who destroys what an event is
// of waits for that, for ever.
MOCK int ibv_close_device(ibv_context* context) {
    const auto open = contexts.find(context);
    must(open != contexts.end(), "that device is not open", "ibv_open_device(3)");
    must(open->second == 0, "an event was not acknowledged", "ibv_get_async_event(3)");
    contexts.erase(open);
    ::close(context->async_fd);
    delete context;
    return 0;
}

MOCK int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
    const auto open = contexts.find(context);
    must(open != contexts.end(), "that device is not open", "ibv_open_device(3)");
    int told[2] = {};
    if (::read(context->async_fd, told, sizeof told) != sizeof told) return -1;
    event->event_type = static_cast<ibv_event_type>(told[0]);
    event->element.port_num = told[1];
    must(got.emplace(event, context).second, "an event was not acknowledged", "ibv_get_async_event(3)");
    ++open->second;
    return 0;
}

MOCK void ibv_ack_async_event(ibv_async_event* event) {
    const auto it = got.find(event);
    must(it != got.end(), "there is no such event to acknowledge", "ibv_get_async_event(3)");
    --contexts.at(it->second);
    got.erase(it);
}
