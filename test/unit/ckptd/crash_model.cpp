// SPDX-License-Identifier: BSD-3-Clause
#include "crash_model.hpp"

#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ckptd_test {
namespace {

namespace fs = std::filesystem;

crash_model* recording = nullptr;
bool no_exchange = false;

std::string path_of(int fd) {
    std::array<char, 4096> text{};
    const auto link = "/proc/self/fd/" + std::to_string(fd);
    const auto n = ::readlink(link.c_str(), text.data(), text.size());
    return n < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(n));
}

std::string path_in(int folder, const char* name) { return path_of(folder) + "/" + name; }

void record(crash_model::operation o) {
    if (!recording || !recording->covers(o.path)) return;
    const int err = errno;
    auto* model = recording;
    recording = nullptr;  // what looks at the tree is not recorded
    model->apply(o);
    recording = model;
    errno = err;
}

}  // namespace

crash_model::crash_model(std::string root) : root_(std::move(root)), each_([](const std::string&) {}) {
    load(root_);
    recording = this;
}

crash_model::~crash_model() { recording = nullptr; }

void crash_model::refuse_exchange(bool refuse) { no_exchange = refuse; }

int crash_model::load(const std::string& path) {
    const auto which = nodes_.size();
    nodes_.emplace_back();
    if (fs::is_directory(path)) {
        nodes_[which].folder = true;
        for (const auto& e : fs::directory_iterator(path)) {
            const int child = load(e.path());
            nodes_[which].names.back()[e.path().filename()] = child;
        }
    } else {
        std::ifstream in(path, std::ios::binary);
        nodes_[which].content.back().assign(std::istreambuf_iterator<char>(in), {});
    }
    return static_cast<int>(which);
}

int crash_model::find(const std::string& path) const {
    int at = 0;
    for (const auto& part : fs::path(path).lexically_relative(root_)) {
        if (part == "." || part.empty()) continue;
        const auto& names = nodes_[static_cast<std::size_t>(at)].names.back();
        const auto it = names.find(part);
        if (it == names.end()) return -1;
        at = it->second;
    }
    return at;
}

// The names of the folder of `path`, as a new state.
std::map<std::string, int>& crash_model::change(const std::string& path, std::string& name) {
    name = fs::path(path).filename();
    auto& states = nodes_[static_cast<std::size_t>(find(fs::path(path).parent_path()))].names;
    states.push_back(states.back());
    return states.back();
}

void crash_model::apply(const operation& o) {
    std::string name, other;
    const auto shown = [&](const char* what) { return what + (" " + o.path); };
    switch (o.kind) {
        case operation::create:
        case operation::make: {
            if (find(o.path) >= 0) return;
            nodes_.emplace_back();
            nodes_.back().folder = o.kind == operation::make;
            change(o.path, name)[name] = static_cast<int>(nodes_.size() - 1);
            return each_(shown("create"));
        }
        case operation::rename: {
            const int moved = find(o.path);
            auto& names = change(o.path, name);
            names.erase(name);
            names[fs::path(o.to).filename()] = moved;
            return each_(shown("rename"));
        }
        case operation::exchange: {
            const int first = find(o.path), second = find(o.to);
            auto& names = change(o.path, name);
            names[name] = second;
            names[fs::path(o.to).filename()] = first;
            return each_(shown("exchange"));
        }
        case operation::remove: {
            const int folder = find(fs::path(o.path).parent_path()), gone = find(o.path);
            change(o.path, name).erase(name);
            nodes_[static_cast<std::size_t>(folder)].removed[name] = gone;
            return each_(shown("remove"));
        }
        case operation::write: {
            const int which = find(o.path);
            if (which < 0) return;  // its name is gone already
            auto& states = nodes_[static_cast<std::size_t>(which)].content;
            states.push_back(states.back());
            auto& text = states.back();
            if (text.size() < o.at + o.data.size()) text.resize(o.at + o.data.size());
            text.replace(o.at, o.data.size(), o.data);
            return each_(shown("write"));
        }
        case operation::sync: {
            const int which = find(o.path);
            if (which < 0) return;
            auto& n = nodes_[static_cast<std::size_t>(which)];
            n.names.erase(n.names.begin(), n.names.end() - 1);
            n.removed.clear();
            n.content.erase(n.content.begin(), n.content.end() - 1);
            return each_(shown("sync"));
        }
    }
}

void crash_model::write_out(const std::string& into, survives what, std::mt19937& random) const {
    write_node(0, into, what, random);
}

void crash_model::write_node(int which, const std::string& path, survives what, std::mt19937& random) const {
    const auto& n = nodes_[static_cast<std::size_t>(which)];
    const auto pick = [&](const auto& states, bool newest) -> const auto& {
        if (what == survives::by_chance)
            return states[std::uniform_int_distribution<std::size_t>(0, states.size() - 1)(random)];
        return newest ? states.back() : states.front();
    };
    if (!n.folder) {
        const auto& text = pick(n.content, what == survives::all);
        std::ofstream(path, std::ios::binary) << text;
        return;
    }
    fs::create_directory(path);
    auto names = pick(n.names, what != survives::synced);
    for (const auto& [name, child] : n.removed) {
        if (what != survives::by_chance || std::uniform_int_distribution<int>(0, 1)(random) == 0) continue;
        if (names.erase(name) == 0) names.emplace(name, child);
    }
    for (const auto& [name, child] : names) write_node(child, path + "/" + name, what, random);
}

}  // namespace ckptd_test

// In place of the C library's: a program's own definition comes first.
#pragma GCC visibility push(default)
extern "C" {

int openat(int folder, const char* name, int flags, ...) {
    va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    const auto fd = static_cast<int>(::syscall(SYS_openat, folder, name, flags, mode));
    if (fd >= 0 && (flags & O_CREAT) != 0)
        ckptd_test::record({ckptd_test::crash_model::operation::create, ckptd_test::path_of(fd), {}, {}, 0});
    return fd;
}

int mkdirat(int folder, const char* name, mode_t mode) {
    const auto done = static_cast<int>(::syscall(SYS_mkdirat, folder, name, mode));
    if (done == 0)
        ckptd_test::record(
            {ckptd_test::crash_model::operation::make, ckptd_test::path_in(folder, name), {}, {}, 0});
    return done;
}

int renameat2(int from, const char* name, int to, const char* wanted, unsigned flags) noexcept {
    using operation = ckptd_test::crash_model::operation;
    if (flags == RENAME_EXCHANGE && ckptd_test::no_exchange) {
        errno = EINVAL;
        return -1;
    }
    const auto done = static_cast<int>(::syscall(SYS_renameat2, from, name, to, wanted, flags));
    if (done == 0)
        ckptd_test::record({flags == RENAME_EXCHANGE ? operation::exchange : operation::rename,
                            ckptd_test::path_in(from, name),
                            ckptd_test::path_in(to, wanted),
                            {},
                            0});
    return done;
}

int renameat(int from, const char* name, int to, const char* wanted) noexcept {
    return renameat2(from, name, to, wanted, 0);
}

int unlinkat(int folder, const char* name, int flags) noexcept {
    const auto done = static_cast<int>(::syscall(SYS_unlinkat, folder, name, flags));
    if (done == 0)
        ckptd_test::record(
            {ckptd_test::crash_model::operation::remove, ckptd_test::path_in(folder, name), {}, {}, 0});
    return done;
}

ssize_t pwrite(int fd, const void* data, std::size_t n, off_t at) {
    const auto done = ::syscall(SYS_pwrite64, fd, data, n, at);
    if (done > 0)
        ckptd_test::record({ckptd_test::crash_model::operation::write,
                            ckptd_test::path_of(fd),
                            {},
                            std::string(static_cast<const char*>(data), static_cast<std::size_t>(done)),
                            static_cast<std::uint64_t>(at)});
    return done;
}

int fsync(int fd) {
    const auto done = static_cast<int>(::syscall(SYS_fsync, fd));
    if (done == 0)
        ckptd_test::record({ckptd_test::crash_model::operation::sync, ckptd_test::path_of(fd), {}, {}, 0});
    return done;
}
}
#pragma GCC visibility pop
