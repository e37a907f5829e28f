// SPDX-License-Identifier: BSD-3-Clause
//
// What a directory may look like after a crash. The operations on storage that this process performs below
// one folder are recorded as they succeed (crash_model.cpp stands in for the C library's functions), and
// after each of them the tree can be written out as a crash at that moment may leave it: what was synced is
// there, of the rest any part, each directory in one of the states that it has had since it was synced, but
// for removals, each of which may have happened or not.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace ckptd_test {

class crash_model {
  public:
    /// Starts to record below `root`, whose present content counts as synced.
    explicit crash_model(std::string root);
    ~crash_model();
    crash_model(const crash_model&) = delete;
    /// `each` is called after every operation, with its name.
    void watch(std::function<void(const std::string& operation)> each) { each_ = std::move(each); }

    enum class survives {
        all,
        synced,    ///< nothing that was not synced
        names,     ///< all names, but of the files only what was synced
        by_chance  ///< of every directory and file one of its states
    };
    /// Writes the tree to `into`, which does not exist.
    void write_out(const std::string& into, survives what, std::mt19937& random) const;

    /// A file system that cannot exchange two names.
    static void refuse_exchange(bool refuse);

    // For crash_model.cpp.
    struct operation {
        enum { create, make, rename, exchange, remove, write, sync } kind;
        std::string path, to;
        std::string data;
        std::uint64_t at = 0;
    };
    void apply(const operation& o);
    bool covers(const std::string& path) const { return path == root_ || path.starts_with(root_ + "/"); }

  private:
    struct node {
        bool folder = false;
        std::vector<std::map<std::string, int>> names{{}};  ///< states since the last sync, the newest last
        std::map<std::string, int> removed;                 ///< since the last sync; they may go in any order
        std::vector<std::string> content{{}};
    };
    int load(const std::string& path);
    int find(const std::string& path) const;
    std::map<std::string, int>& change(const std::string& path, std::string& name);
    void write_node(int which, const std::string& path, survives what, std::mt19937& random) const;

    std::string root_;
    std::vector<node> nodes_;
    std::function<void(const std::string&)> each_;
};

}  // namespace ckptd_test
