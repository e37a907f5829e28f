// SPDX-License-Identifier: BSD-3-Clause
#include "crash_model.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <catch2/catch.hpp>
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

/// By path; of a folder nothing but that it is there.
std::map<std::string, std::string> tree(const std::string& dir) {
    std::map<std::string, std::string> out;
    for (const auto& e : fs::recursive_directory_iterator(dir)) {
        auto& content = out[e.path().lexically_relative(dir)];
        if (e.is_directory()) continue;
        std::ifstream in(e.path(), std::ios::binary);
        content.assign(std::istreambuf_iterator<char>(in), {});
    }
    return out;
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
            nodes_[which].states.back()[e.path().filename()] = child;
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
        const auto& here = nodes_[static_cast<std::size_t>(at)].states.back();
        const auto it = here.find(part);
        if (it == here.end()) return -1;
        at = it->second;
    }
    return at;
}

int crash_model::folder_of(const std::string& path) const { return find(fs::path(path).parent_path()); }

// The names of the folder of `path`, as a new state.
crash_model::names& crash_model::change(const std::string& path, std::string& name) {
    name = fs::path(path).filename();
    auto& states = nodes_[static_cast<std::size_t>(folder_of(path))].states;
    states.push_back(states.back());
    return states.back();
}

void crash_model::rename_to(const operation& o) {
    const int moved = find(o.path), from = folder_of(o.path), to = folder_of(o.to);
    std::string name, old_name;
    if (from == to) {
        auto& both = change(o.path, old_name);
        both.erase(old_name);
        both[fs::path(o.to).filename()] = moved;
        return;
    }
    change(o.path, old_name).erase(old_name);
    change(o.to, name)[name] = moved;
    std::erase_if(moves_, [&](const auto& m) { return m.what == moved; });
    moves_.push_back({moved, from, to, old_name, name});
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
            rename_to(o);
            return each_(shown("rename"));
        }
        case operation::exchange: {
            const int first = find(o.path), second = find(o.to);
            auto& both = change(o.path, name);
            both[name] = second;
            both[fs::path(o.to).filename()] = first;
            return each_(shown("exchange"));
        }
        case operation::remove: {
            const int folder = folder_of(o.path), gone = find(o.path);
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
            n.states.erase(n.states.begin(), n.states.end() - 1);
            n.removed.clear();
            n.content.erase(n.content.begin(), n.content.end() - 1);
            for (auto& m : moves_) m.lasts = m.lasts || m.from == which || m.to == which;
            return each_(shown("sync"));
        }
    }
}

std::size_t crash_model::replay(const std::string& dir, const std::function<void()>& act,
                                const std::function<void(const std::string&, survives)>& each, int chances) {
    std::mt19937 random(7);
    const auto scratch = (fs::path(dir).parent_path() / "crashed").string();
    std::size_t operations = 0;
    crash_model model(dir);
    const auto crash = [&](const std::string& operation, survives what) {
        INFO("operation " << operations << ", " << operation << ", way " << static_cast<int>(what));
        fs::remove_all(scratch);
        model.write_out(scratch, what, random);
        each(scratch, what);
    };
    model.watch([&](const std::string& operation) {
        ++operations;
        for (const auto what : {survives::all, survives::synced, survives::names}) crash(operation, what);
        for (int i = 0; i < chances; ++i) crash(operation, survives::by_chance);
    });
    act();
    // What the model has made of it is what there is.
    fs::remove_all(scratch);
    model.write_out(scratch, survives::all, random);
    CHECK(tree(scratch) == tree(dir));
    return operations;
}

void crash_model::write_out(const std::string& into, survives what, std::mt19937& random) const {
    auto chosen = choose_names(what, random);
    for (const auto& m : moves_) settle(m, chosen, random);
    write_node(0, into, chosen, what, random);
}

std::vector<crash_model::names> crash_model::choose_names(survives what, std::mt19937& random) const {
    std::vector<names> out;
    for (const auto& n : nodes_) {
        const auto last = n.states.size() - 1;
        auto state = what == survives::synced ? 0 : last;
        if (what == survives::by_chance) state = std::uniform_int_distribution<std::size_t>(0, last)(random);
        auto chosen = n.states[state];
        for (const auto& [name, child] : n.removed) {
            if (what != survives::by_chance || std::uniform_int_distribution<int>(0, 1)(random) == 0)
                continue;
            if (chosen.erase(name) == 0) chosen.emplace(name, child);
        }
        out.push_back(std::move(chosen));
    }
    return out;
}

// Where the states of the two folders do not tell alike whether it has moved.
void crash_model::settle(const move& m, std::vector<names>& chosen, std::mt19937& random) const {
    auto& from = chosen[static_cast<std::size_t>(m.from)];
    auto& to = chosen[static_cast<std::size_t>(m.to)];
    const auto in = [&](const names& folder) {
        return std::any_of(folder.begin(), folder.end(), [&](const auto& n) { return n.second == m.what; });
    };
    if (in(from) != in(to)) return;
    const bool moved = m.lasts || std::uniform_int_distribution<int>(0, 1)(random) == 1;
    std::erase_if(from, [&](const auto& n) { return n.second == m.what; });
    std::erase_if(to, [&](const auto& n) { return n.second == m.what; });
    if (moved)
        to[m.name] = m.what;
    else
        from[m.old_name] = m.what;
}

std::string crash_model::choose_content(const node& n, survives what, std::mt19937& random) const {
    if (what == survives::all) return n.content.back();
    if (what != survives::by_chance) return n.content.front();
    const auto last = n.content.size() - 1;
    const auto state = std::uniform_int_distribution<std::size_t>(0, last)(random);
    auto text = n.content[state];
    if (state == last) return text;
    // Of the write that follows some sectors.
    constexpr std::size_t sector = 512;
    const auto& next = n.content[state + 1];
    for (std::size_t at = 0; at < next.size(); at += sector) {
        if (std::uniform_int_distribution<int>(0, 1)(random) == 0) continue;
        if (text.size() < at) text.resize(at);
        text.replace(at, sector, next, at, sector);
    }
    return text;
}

void crash_model::write_node(int which, const std::string& path, const std::vector<names>& chosen,
                             survives what, std::mt19937& random) const {
    const auto& n = nodes_[static_cast<std::size_t>(which)];
    if (!n.folder) {
        std::ofstream(path, std::ios::binary) << choose_content(n, what, random);
        return;
    }
    fs::create_directory(path);
    for (const auto& [name, child] : chosen[static_cast<std::size_t>(which)])
        write_node(child, path + "/" + name, chosen, what, random);
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
    // The model needs no disk, and a busy one would take most of the time.
    const int done = ::fcntl(fd, F_GETFD) < 0 ? -1 : 0;
    if (done == 0)
        ckptd_test::record({ckptd_test::crash_model::operation::sync, ckptd_test::path_of(fd), {}, {}, 0});
    return done;
}
}
#pragma GCC visibility pop
