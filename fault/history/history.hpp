// SPDX-License-Identifier: BSD-3-Clause
//
// What happened, on disk (SQLite): incidents with what was done about them, the events they were made of, and
// how far each agent was read. It says what was meant to be done; whether it was done, Slurm says. Blocking:
// one thread at a time (the controller's database thread).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "fault/event.hpp"
#include "fault/incident/incident.hpp"

struct sqlite3;

namespace banyan::fault {

/// Where the agent of a node was last read, so that it can read what it missed.
struct cursor {
    std::string boot_id, stream;
    std::uint64_t inode = 0, position = 0;
};

/// An event with the incident that took it.
struct kept_event {
    event what;
    std::uint64_t incident = 0;
};

class history {
  public:
    /// Creates the file and its folder when missing. A file whose incidents, cursors, agents or flags are
    /// damaged is put aside (".damaged-" and the time); `warning` says so, and what is forgotten with it.
    static result<history> open(const std::filesystem::path& path, std::string& warning);

    result<bool> knows(const event& e);
    /// Events and the incidents they changed, together or not at all.
    result<void> keep(const std::vector<kept_event>& events, const std::vector<incident>& incidents);
    result<void> keep(const incident& i);
    result<void> keep(const std::map<std::string, cursor>& cursors, const std::map<std::string, bool>& flags,
                      const std::set<std::string>& agents);
    /// How long a change waits for another process's, at most; two seconds.
    void wait_for_locks(std::chrono::milliseconds most);

    /// The newest `most` incidents, the newest `most_open` that are open and neither merely told of a job nor
    /// of an application, so many open ones of applications, and all others that can still change, oldest
    /// first.
    result<std::vector<incident>> incidents(std::size_t most, std::size_t most_open,
                                            std::size_t most_of_applications);
    result<std::optional<incident>> find(std::uint64_t number);
    /// No smaller number is to be given to an incident: those before it are in a file that was put aside.
    result<std::uint64_t> first_number();
    /// Nodes that were taken out since then and are not back, and when; for the limits.
    result<std::map<std::string, std::int64_t>> taken_since(std::int64_t since_ms);

    result<void> set_cursor(const std::string& node, const cursor& c);
    result<std::optional<cursor>> cursor_of(const std::string& node);
    result<std::map<std::string, cursor>> cursors();
    /// The node has an agent, or had one.
    result<void> note_agent(const std::string& node);
    result<std::set<std::string>> agents();
    result<void> set_flag(const std::string& name, bool on);
    result<bool> flag(const std::string& name);

  private:
    struct closer {
        void operator()(sqlite3* db) const;
    };
    explicit history(sqlite3* db) : db_(db) {}
    result<void> prepare_tables();
    bool is_damaged();
    /// Of a damaged file: the first number that none of its incidents can have.
    std::uint64_t number_after();
    result<void> begin_at(std::uint64_t number);
    result<void> put(const incident& i);
    template <class F>
    result<void> together(F what);

    std::unique_ptr<sqlite3, closer> db_;
};

}  // namespace banyan::fault
