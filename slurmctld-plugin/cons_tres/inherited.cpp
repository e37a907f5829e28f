// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/cons_tres/inherited.hpp"

#include <atomic>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/guard.hpp"
#include "common/result.hpp"
#include "slurmctld-plugin/cons_tres/host_program.hpp"
#include "slurmctld-plugin/notice.hpp"

namespace banyan::slurm {
namespace {

constexpr std::string_view file_name = "select_cons_tres.so";

struct opened {
    void* handle = nullptr;
    select_functions functions{};
};

std::mutex opening;  ///< guards `current` and `gave_up`; what is published through `ready` does not change
opened current;
bool gave_up = false;
std::atomic<const select_functions*> ready{nullptr};

/// Where Slurm would find it, in that order; then beside us, and where it was when we were built.
std::vector<std::string> candidates() {
    std::vector<std::string> out;
    const auto add = [&](std::string_view folder) {
        if (folder.empty()) return;
        auto path = fmt::format("{}/{}", folder, file_name);
        for (const auto& known : out)
            if (known == path) return;
        out.push_back(std::move(path));
    };
    std::string_view folders = plugin_folders();
    while (!folders.empty()) {
        const auto end = folders.find(':');
        add(folders.substr(0, end));
        folders = end == std::string_view::npos ? std::string_view() : folders.substr(end + 1);
    }
    Dl_info us{};
    if (::dladdr(reinterpret_cast<const void*>(&start_inherited_plugin), &us) && us.dli_fname) {
        const std::string_view path = us.dli_fname;
        if (const auto slash = path.rfind('/'); slash != std::string_view::npos) add(path.substr(0, slash));
    }
    add(BANYAN_SLURM_PLUGIN_DIR);
    return out;
}

std::string dl_error() {
    const char* text = ::dlerror();
    return text ? text : "unknown error";
}

result<void> check_release(void* handle) {
    const auto* type = static_cast<const char*>(::dlsym(handle, "plugin_type"));
    const auto* version = static_cast<const std::uint32_t*>(::dlsym(handle, "plugin_version"));
    if (!type || !version) return fail(errc::invalid_input, "is no plugin of Slurm");
    if (std::string_view(type) != "select/cons_tres")
        return fail(errc::invalid_input, fmt::format("is the plugin {}", type));
    if (*version != SLURM_VERSION_NUMBER)
        return fail(errc::invalid_input,
                    fmt::format("is that of Slurm {}.{:02}.{}", SLURM_VERSION_MAJOR(*version),
                                SLURM_VERSION_MINOR(*version), SLURM_VERSION_MICRO(*version)));
    return {};
}

result<void> find_functions(void* handle, select_functions& functions) {
    std::string missing;
    const auto find = [&](auto& function, const char* name) {
        function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(handle, name));
        if (!function) missing = name;
    };
#define BANYAN_FIND(name, ...) find(functions.name, "select_p_" #name);
    BANYAN_SELECT_TABLE(BANYAN_FIND, BANYAN_FIND)
#undef BANYAN_FIND
    if (!missing.empty()) return fail(errc::invalid_input, "has no function " + missing);
    return {};
}

/// Open and begun.
result<opened> open_plugin(const std::string& path) {
    struct stat file {};
    if (::stat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode))
        return fail(errc::not_found, "is not there");
    opened out;
    // As Slurm opens it: lazily, since each of its programs has a part only of what plugins refer to.
    out.handle = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!out.handle) return fail(errc::unavailable, "cannot be loaded: " + dl_error());
    auto usable = check_release(out.handle);
    if (usable) usable = find_functions(out.handle, out.functions);
    if (usable) {
        const auto begin = reinterpret_cast<int (*)()>(::dlsym(out.handle, "init"));
        if (begin && begin() != SLURM_SUCCESS) usable = fail(errc::unavailable, "does not start");
    }
    if (usable) return out;
    ::dlclose(out.handle);
    return std::unexpected(usable.error());
}

/// Under `opening`.
void open_first_usable() {
    std::string tried;
    for (const auto& path : candidates()) {
        auto plugin = open_plugin(path);
        if (plugin) {
            current = *plugin;
            ready.store(&current.functions, std::memory_order_release);
            return;
        }
        tried += fmt::format("{}{} {}", tried.empty() ? "" : "; ", path, plugin.error().what);
    }
    gave_up = true;
    log_error(
        fmt::format("select/cons_tres_banyan was built for Slurm {} and places by its select/cons_tres, "
                    "which cannot be used: {}. Install banyan for this Slurm, or set "
                    "SelectType=select/cons_tres",
                    SLURM_VERSION_STRING, tried));
}

}  // namespace

const select_functions* inherited_plugin() {
    if (const auto* functions = ready.load(std::memory_order_acquire)) return functions;
    return guarded(
        "inherited_plugin", [] { return static_cast<const select_functions*>(nullptr); },
        [] {
            const std::lock_guard lock(opening);
            if (!current.handle && !gave_up) open_first_usable();
            return ready.load(std::memory_order_relaxed);
        });
}

int start_inherited_plugin() {
    gave_up = false;
    if (!selected()) return SLURM_SUCCESS;
    return inherited_plugin() ? SLURM_SUCCESS : SLURM_ERROR;
}

void end_inherited_plugin() {
    const std::lock_guard lock(opening);
    ready.store(nullptr, std::memory_order_release);
    if (!current.handle) return;
    if (const auto end = reinterpret_cast<int (*)()>(::dlsym(current.handle, "fini"))) end();
    ::dlclose(current.handle);
    current = {};
}

}  // namespace banyan::slurm
