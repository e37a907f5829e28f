// SPDX-License-Identifier: BSD-3-Clause
//
// What a directory may look like after a crash. The operations on storage that this process performs below
// one folder are recorded as they succeed (crash_model.cpp stands in for the C library's functions), and
// after each of them the tree can be written out as a crash at that moment may leave it: what was synced is
// there, of the rest any part, each directory in one of the states that it has had since it was synced, but
// for removals, each of which may have happened or not. A write may have reached some sectors and not others.
// A move from one folder to another is one act, as on every file system with a journal: what moved is in the
// one or the other, and in the new one for sure when either folder was synced since.
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
    /// Calls `act`; after each of its operations `each` gets the tree as crashes of every kind may leave it,
    /// of the last one so many. Returns how many operations there were.
    static std::size_t replay(const std::string& dir, const std::function<void()>& act,
                              const std::function<void(const std::string& crashed, survives what)>& each,
                              int chances = 4);
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
    using names = std::map<std::string, int>;
    struct node {
        bool folder = false;
        std::vector<names> states{{}};  ///< a folder's since the last sync, the newest last
        names removed;                  ///< since the last sync; they may go in any order
        std::vector<std::string> content{{}};
    };
    struct move {
        int what, from, to;
        std::string old_name, name;
        bool lasts = false;
    };
    int load(const std::string& path);
    int find(const std::string& path) const;
    int folder_of(const std::string& path) const;
    names& change(const std::string& path, std::string& name);
    void rename_to(const operation& o);
    std::vector<names> choose_names(survives what, std::mt19937& random) const;
    void settle(const move& m, std::vector<names>& chosen, std::mt19937& random) const;
    std::string choose_content(const node& n, survives what, std::mt19937& random) const;
    void write_node(int which, const std::string& path, const std::vector<names>& chosen, survives what,
                    std::mt19937& random) const;

    std::string root_;
    std::vector<node> nodes_;
    std::vector<move> moves_;
    std::function<void(const std::string&)> each_;
};

}  // namespace ckptd_test
