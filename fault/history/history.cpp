// SPDX-License-Identifier: BSD-3-Clause
#include "fault/history/history.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fault/history/history_file.hpp"
#include "fault/history/statement.hpp"
#include "fault/incident/job_rules.hpp"

namespace banyan::fault {
namespace {

constexpr int schema_version = 1;
constexpr const char* first_number_flag = "first_number";

constexpr const char* tables = R"(
CREATE TABLE IF NOT EXISTS incidents(number INTEGER PRIMARY KEY, state TEXT NOT NULL, node_out_ms INTEGER NOT NULL,
                                     json TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS events(node TEXT, boot TEXT, stream TEXT, position INTEGER, line_ms INTEGER, incident INTEGER,
                                  text TEXT, PRIMARY KEY(node, boot, stream, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS cursors(node TEXT PRIMARY KEY, boot TEXT, stream TEXT, inode INTEGER, position INTEGER)
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS agents(node TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS flags(name TEXT PRIMARY KEY, value INTEGER) WITHOUT ROWID;
)";

// SQLite's integers are signed; the bits stay the same.
std::int64_t bits(std::uint64_t n) { return static_cast<std::int64_t>(n); }

result<void> run(sqlite3* db, const char* sql) {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK) return {};
    return history_error(db);
}

}  // namespace

void history::closer::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

result<void> history::prepare_tables() {
    BANYAN_CHECK(
        run(db_.get(), "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA busy_timeout=2000;"));
    statement version(db_.get(), "PRAGMA user_version");
    BANYAN_TRY(const bool row, version.step());
    const auto found = row ? version.number(0) : 0;
    if (found != 0 && found != schema_version)
        return fail(errc::conflict,
                    fmt::format("the history is of version {}, this program knows {}", found, schema_version),
                    "use the banyan that wrote it, or move the file away");
    BANYAN_CHECK(run(db_.get(), tables));
    if (found == schema_version) return {};  // nothing to write: the disk may be full
    return run(db_.get(), fmt::format("PRAGMA user_version={}", schema_version).c_str());
}

// All or nothing.
template <class F>
result<void> history::together(F what) {
    BANYAN_CHECK(run(db_.get(), "BEGIN IMMEDIATE"));
    auto done = what();
    if (done) done = run(db_.get(), "COMMIT");
    if (!done) (void)run(db_.get(), "ROLLBACK");
    return done;
}

// What a start reads and decisions rest on. The events are by far the most of the file, and none of them is
// read before an agent sends one again: damage there is met then, said, and costs the incidents nothing.
bool history::is_damaged() {
    for (const char* check : {"PRAGMA quick_check(incidents)", "PRAGMA quick_check(cursors)",
                              "PRAGMA quick_check(agents)", "PRAGMA quick_check(flags)"}) {
        statement s(db_.get(), check);
        const auto row = s.step();
        const int why = sqlite3_errcode(db_.get()) & 0xff;
        if (row ? *row && s.text(0) != "ok" : why == SQLITE_CORRUPT || why == SQLITE_NOTADB) return true;
    }
    return false;
}

result<void> history::begin_at(std::uint64_t number) {
    statement s(db_.get(), "INSERT OR REPLACE INTO flags VALUES(?,?)");
    BANYAN_CHECK(s.bind(first_number_flag).bind(bits(number)).step());
    return {};
}

result<history> history::open(const std::filesystem::path& path, std::string& warning) {
    std::error_code ec;
    if (!path.parent_path().empty()) std::filesystem::create_directories(path.parent_path(), ec);
    std::uint64_t first = 0;  // of a file that takes the place of a damaged one
    for (int attempt = 0;; ++attempt) {
        make_private(path);
        sqlite3* db = nullptr;
        const int rc =
            sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
        history out(db);
        if (rc != SQLITE_OK)
            return fail(errc::denied,
                        fmt::format("cannot open the history {}: {}", path.string(), sqlite3_errmsg(db)));
        auto prepared = out.prepare_tables();
        const int why = sqlite3_errcode(db) & 0xff;
        const bool damaged = prepared ? out.is_damaged() : why == SQLITE_NOTADB || why == SQLITE_CORRUPT;
        if (prepared && !damaged) {
            if (first > 1) BANYAN_CHECK(out.begin_at(first));
            return out;
        }
        if (prepared) prepared = fail(errc::invalid_input, "the history " + path.string() + " is damaged");
        if (attempt > 0 || !damaged) return std::unexpected(prepared.error());
        first = out.number_after();
        out.db_.reset();
        const auto aside = path_aside(path);
        std::filesystem::rename(path, aside, ec);
        if (ec) return std::unexpected(prepared.error());
        for (const char* rest : {"-wal", "-shm"})
            std::filesystem::rename(path.string() + rest, aside + rest, ec);
        warning = fmt::format(
            "the history {} is damaged: put aside as {}, a new one begins with incident f{:05d}. Forgotten: "
            "all "
            "incidents before, with what was held back or under way; the nodes that were taken out of late, "
            "so "
            "that the limits begin anew; whether the circuit breaker was open; which lines were acted on, "
            "and how "
            "far each agent was read. Nodes that are out stay out, and links that are kept off stay so for "
            "avoid_for",
            path.string(), aside, first);
    }
}

result<std::uint64_t> history::first_number() {
    statement s(db_.get(), "SELECT value FROM flags WHERE name=?");
    BANYAN_TRY(const bool row, s.bind(first_number_flag).step());
    return row ? static_cast<std::uint64_t>(s.number(0)) : std::uint64_t{1};
}

std::uint64_t history::number_after() {
    const auto answer = [this](const char* sql) -> std::optional<std::int64_t> {
        statement s(db_.get(), sql);
        const auto row = s.step();
        return row && *row ? std::optional(s.number(0)) : std::nullopt;
    };
    statement check(db_.get(), "PRAGMA quick_check(incidents)");
    if (const auto row = check.step(); row && *row && check.text(0) == "ok") {
        const auto highest = answer("SELECT coalesce(max(number), 0) FROM incidents");
        const auto own_first = answer("SELECT coalesce(max(value), 1) FROM flags WHERE name='first_number'");
        if (highest && own_first) return static_cast<std::uint64_t>(std::max(*highest + 1, *own_first));
    }
    // By the minute: no history counts that far, and each one that is lost later begins higher.
    std::uint64_t stamp = 0;
    const auto digits = fmt::format("{:%y%m%d%H%M}", fmt::gmtime(std::time(nullptr)));
    for (const char c : digits) stamp = stamp * 10 + static_cast<std::uint64_t>(c - '0');
    return stamp * 1000 + 1;
}

result<bool> history::knows(const event& e) {
    statement s(db_.get(), "SELECT 1 FROM events WHERE node=? AND boot=? AND stream=? AND position=?");
    return s.bind(e.node).bind(e.boot_id).bind(e.stream).bind(bits(e.position)).step();
}

result<void> history::put(const incident& i) {
    statement s(db_.get(), "INSERT OR REPLACE INTO incidents VALUES(?,?,?,?)");
    const auto text = to_json(i).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    BANYAN_CHECK(s.bind(bits(i.number)).bind(name_of(i.state)).bind(i.node_out_ms).bind(text).step());
    return {};
}

result<void> history::keep(const incident& i) { return put(i); }

result<void> history::keep(const std::vector<kept_event>& events, const std::vector<incident>& incidents) {
    return together([&]() -> result<void> {
        for (const auto& [e, number] : events) {
            statement s(db_.get(), "INSERT OR IGNORE INTO events VALUES(?,?,?,?,?,?,?)");
            s.bind(e.node).bind(e.boot_id).bind(e.stream).bind(bits(e.position)).bind(e.line_ms);
            BANYAN_CHECK(s.bind(bits(number)).bind(e.text).step());
        }
        for (const auto& i : incidents) BANYAN_CHECK(put(i));
        return {};
    });
}

result<void> history::keep(const std::map<std::string, cursor>& cursors,
                           const std::map<std::string, bool>& flags, const std::set<std::string>& agents) {
    return together([&]() -> result<void> {
        for (const auto& [node, where] : cursors) BANYAN_CHECK(set_cursor(node, where));
        for (const auto& [name, on] : flags) BANYAN_CHECK(set_flag(name, on));
        for (const auto& node : agents) BANYAN_CHECK(note_agent(node));
        return {};
    });
}

result<std::vector<incident>> history::incidents(std::size_t most, std::size_t most_open,
                                                 std::size_t most_of_applications) {
    // Any number of jobs and applications may have failed since a node was taken out, or somebody ruled on
    // it. Of an application those come first that name its job: see engine::make_room_for.
    static const auto of_an_application = fmt::format(
        "(json_extract(json, '$.reason') IN ('{}') AND ifnull(json_extract(json, '$.xid'), 0) NOT IN ({}))",
        fmt::join(application_reasons, "','"), fmt::join(hardware_xids, ","));
    const auto sql = fmt::format(R"(SELECT json FROM incidents WHERE state <> 'done'
        OR number IN (SELECT number FROM incidents ORDER BY number DESC LIMIT ?1)
        OR CASE WHEN json_valid(json) THEN json_extract(json, '$.times.avoid_ms') <> 0
                OR (json_extract(json, '$.times.closed_ms') = 0
                    AND (node_out_ms <> 0 OR json_extract(json, '$.cancelled_by') <> '')) END
        OR number IN (SELECT number FROM incidents WHERE CASE WHEN json_valid(json) THEN
                          json_extract(json, '$.times.closed_ms') = 0 AND json_extract(json, '$.reason') NOT IN (?2, ?3)
                          AND NOT {0} END ORDER BY number DESC LIMIT ?4)
        OR number IN (SELECT number FROM incidents WHERE CASE WHEN json_valid(json) THEN
                          json_extract(json, '$.times.closed_ms') = 0 AND {0} END
                      ORDER BY ifnull(json_extract(json, '$.asked'), '') NOT IN ('', 'ignore', 'log', 'notify-user') DESC,
                               (ifnull(json_extract(json, '$.accused'), 0) <> 0
                                OR json_array_length(json, '$.jobs') = 1) DESC, number DESC LIMIT ?5)
        ORDER BY number DESC)",
                                 of_an_application);
    statement s(db_.get(), sql.c_str());
    s.bind(static_cast<std::int64_t>(most)).bind(job_end_reason).bind(job_damage_reason);
    s.bind(static_cast<std::int64_t>(most_open)).bind(static_cast<std::int64_t>(most_of_applications));
    std::vector<incident> out;
    for (;;) {
        BANYAN_TRY(const bool row, s.step());
        if (!row) break;
        // One that cannot be read is left out rather than keeping the daemon from its work.
        if (auto i = incident_from(nlohmann::json::parse(s.text(0), nullptr, false)))
            out.push_back(std::move(*i));
    }
    std::ranges::reverse(out);
    return out;
}

result<std::optional<incident>> history::find(std::uint64_t number) {
    statement s(db_.get(), "SELECT json FROM incidents WHERE number=?");
    BANYAN_TRY(const bool row, s.bind(bits(number)).step());
    if (!row) return std::optional<incident>{};
    BANYAN_TRY(auto found, incident_from(nlohmann::json::parse(s.text(0), nullptr, false)));
    return std::optional(std::move(found));
}

result<std::map<std::string, std::int64_t>> history::taken_since(std::int64_t since_ms) {
    statement s(db_.get(), "SELECT json FROM incidents WHERE node_out_ms>? ORDER BY node_out_ms");
    s.bind(since_ms);
    std::map<std::string, std::int64_t> out;
    for (;;) {
        BANYAN_TRY(const bool row, s.step());
        if (!row) return out;
        const auto i = incident_from(nlohmann::json::parse(s.text(0), nullptr, false));
        if (i && i->closed_ms == 0) out[i->object.node] = i->node_out_ms;
    }
}

result<void> history::set_cursor(const std::string& node, const cursor& c) {
    statement s(db_.get(), "INSERT OR REPLACE INTO cursors VALUES(?,?,?,?,?)");
    BANYAN_CHECK(
        s.bind(node).bind(c.boot_id).bind(c.stream).bind(bits(c.inode)).bind(bits(c.position)).step());
    return {};
}

result<std::optional<cursor>> history::cursor_of(const std::string& node) {
    statement s(db_.get(), "SELECT boot, stream, inode, position FROM cursors WHERE node=?");
    BANYAN_TRY(const bool row, s.bind(node).step());
    if (!row) return std::optional<cursor>{};
    return cursor{s.text(0), s.text(1), static_cast<std::uint64_t>(s.number(2)),
                  static_cast<std::uint64_t>(s.number(3))};
}

result<std::map<std::string, cursor>> history::cursors() {
    statement s(db_.get(), "SELECT node, boot, stream, inode, position FROM cursors");
    std::map<std::string, cursor> out;
    for (;;) {
        BANYAN_TRY(const bool row, s.step());
        if (!row) return out;
        out[s.text(0)] = {s.text(1), s.text(2), static_cast<std::uint64_t>(s.number(3)),
                          static_cast<std::uint64_t>(s.number(4))};
    }
}

void history::wait_for_locks(std::chrono::milliseconds most) {
    sqlite3_busy_timeout(db_.get(), static_cast<int>(most.count()));
}

result<void> history::note_agent(const std::string& node) {
    statement s(db_.get(), "INSERT OR IGNORE INTO agents VALUES(?)");
    BANYAN_CHECK(s.bind(node).step());
    return {};
}

result<std::set<std::string>> history::agents() {
    // Before there was a table for them, those that read a file are known by that.
    statement s(db_.get(), "SELECT node FROM agents UNION SELECT node FROM cursors");
    std::set<std::string> out;
    for (;;) {
        BANYAN_TRY(const bool row, s.step());
        if (!row) return out;
        out.insert(s.text(0));
    }
}

result<void> history::set_flag(const std::string& name, bool on) {
    statement s(db_.get(), "INSERT OR REPLACE INTO flags VALUES(?,?)");
    BANYAN_CHECK(s.bind(name).bind(std::int64_t{on}).step());
    return {};
}

result<bool> history::flag(const std::string& name) {
    statement s(db_.get(), "SELECT value FROM flags WHERE name=?");
    BANYAN_TRY(const bool row, s.bind(name).step());
    return row && s.number(0) != 0;
}

}  // namespace banyan::fault
