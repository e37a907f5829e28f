// SPDX-License-Identifier: BSD-3-Clause
//
// A history that another process has locked, and one that does not answer: decisions do not wait for it, what
// waits has bounds, and no agent forgets what is not kept.
#include <map>
#include <utility>

#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <sqlite3.h>

#include "fault/controller/history_writer.hpp"
#include "fault/controller/seen_events.hpp"
#include "test/unit/fault/controller_bench.hpp"

namespace test_slow_history {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;

namespace {

/// Another process, such as somebody's sqlite3, in the middle of a change.
class stranger {
  public:
    explicit stranger(const std::string& path) {
        REQUIRE(sqlite3_open(path.c_str(), &db_) == SQLITE_OK);
        REQUIRE(sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
    }
    ~stranger() { leave(); }
    stranger(const stranger&) = delete;
    void leave() { sqlite3_close(std::exchange(db_, nullptr)); }

  private:
    sqlite3* db_ = nullptr;
};

gate the_disk(false);

int wait_for_disk(void*) {
    the_disk();
    return 0;
}

int slow_down(sqlite3* db, const char**, const void*) {
    sqlite3_progress_handler(db, 1, wait_for_disk, nullptr);
    return SQLITE_OK;
}

/// As long as it lives, a history that is opened stops whenever the disk is shut.
class slow_disk {
  public:
    slow_disk() { sqlite3_auto_extension(entry()); }
    ~slow_disk() {
        the_disk.open();
        sqlite3_cancel_auto_extension(entry());
    }
    slow_disk(const slow_disk&) = delete;

  private:
    static void (*entry())() { return reinterpret_cast<void (*)()>(slow_down); }
};

void tell(life& l, event e, int& kept) {
    const auto node = e.node;
    asio::co_spawn(l.io, l.c.take_events(node, {std::move(e)}, [&kept] { ++kept; }), asio::detached);
}

event app_error(int gpu, std::uint64_t position, const char* node) {
    return event_of(gpu_line(gpu, "13, x"), clock::wall_ms(), position, node);
}

}  // namespace

TEST_CASE("a history that is locked delays no decision, and is caught up with", "[fault]") {
    controller_bench b;
    life l(b);
    int kept = 0;
    const auto fatal = b.xid79();
    const auto began = clock::now();
    {
        stranger other(b.settings.history);
        for (std::uint64_t n = 1; n <= 4; ++n) {
            tell(l, app_error(1, n, "n01"), kept);
            l.pass(20ms);
        }
        tell(l, fatal, kept);
        CHECK(l.until([&] { return !b.slurm.calls.empty(); }));
        CHECK(clock::now() - began < 2s);
        CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
        // Its agent comes again, with the same: nothing is done twice, and nothing may be forgotten.
        tell(l, fatal, kept);
        l.pass(1s);
        CHECK(kept == 0);
    }
    CHECK(l.until([&] { return kept == 6; }));
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    auto book = history::open(b.settings.history, b.reason);
    REQUIRE(book);
    CHECK(*book->knows(fatal));
    CHECK(*book->knows(app_error(1, 4, "n01")));
    CHECK(l.c.incidents().all().rbegin()->second.lines == 1);
}

TEST_CASE("a history that does not answer stops nothing that is new", "[fault]") {
    controller_bench b;
    slow_disk disk;
    life l(b);
    l.pass(100ms);
    the_disk.shut();
    int kept = 0;
    auto fatal = b.xid79(), before = app_error(1, 7, "n01");
    fatal.written_ms = clock::wall_ms() + 4'950;  // so late that no earlier controller can have heard of it
    before.written_ms = clock::wall_ms() - 1'000;
    const auto began = clock::now();
    tell(l, fatal, kept);
    tell(l, before, kept);
    CHECK(l.until([&] { return !b.slurm.calls.empty(); }));
    CHECK(clock::now() - began < 3s);
    CHECK(b.slurm.calls == std::vector<std::string>{"down n03"});
    // What an earlier controller may have acted on waits at its agent.
    l.pass(1s);
    CHECK(l.c.incidents().all().size() == 1);
    CHECK(kept == 0);
    the_disk.open();
    CHECK(l.until([&] { return kept == 1; }));
    tell(l, before, kept);
    CHECK(l.until([&] { return kept == 2; }));
    CHECK(l.c.incidents().all().size() == 2);
}

TEST_CASE("what waits for the history has bounds", "[fault]") {
    controller_bench b;
    asio::io_context io;
    incident i;
    i.number = 1;
    int copies = 0;
    history_writer w(
        io,
        [&](std::uint64_t) {
            ++copies;
            return &i;
        },
        [](const error&) {});
    w.begin(*history::open(b.settings.history, b.reason));
    gate shut;
    const std::function<bool(history&)> hang = [&shut](history&) {
        shut();
        return true;
    };
    std::vector<std::pair<bool, clock::duration>> said;
    const auto ask = [&]() -> task<void> {
        const auto since = clock::now();
        const auto got = co_await w.ask(hang);
        said.emplace_back(got.has_value(), clock::now() - since);
    };
    asio::co_spawn(io, ask(), asio::detached);
    for (int n = 0; n < 1'000; ++n) {
        i.cause = std::to_string(n);
        w.save_soon(1);
        w.set_cursor("n03", {"boot", "stream", 1, static_cast<std::uint64_t>(n)});
    }
    b.time.pass(io, history_writer::patience - 1ms);
    CHECK(said.empty());
    b.time.pass(io, 2ms);
    REQUIRE(said.size() == 1);
    CHECK_FALSE(said[0].first);
    bool saved = false;
    const auto save = [&]() -> task<void> {
        co_await w.save(1);
        saved = true;
    };
    asio::co_spawn(io, ask(), asio::detached);
    asio::co_spawn(io, save(), asio::detached);
    b.time.pass(io, 50ms);
    REQUIRE(said.size() == 2);
    CHECK_FALSE(said[1].first);
    CHECK(said[1].second == 0s);
    CHECK(saved);
    shut.open();
    b.time.pass(io, 300ms);
    CHECK(copies <= 3);
    w.finish();
    auto book = history::open(b.settings.history, b.reason);
    REQUIRE(book);
    CHECK((*book->find(1))->cause == "999");
    CHECK((*book->cursor_of("n03"))->position == 999);
}

TEST_CASE("an incident that cannot be written costs nothing else", "[fault]") {
    controller_bench b;
    asio::io_context io;
    std::map<std::uint64_t, incident> all;
    for (const std::uint64_t n : {1, 2, 3}) all[n].number = n;
    std::vector<std::string> complaints;
    history_writer w(
        io, [&](std::uint64_t n) { return &all.at(n); },
        [&](const error& e) { complaints.push_back(e.text()); });
    w.begin(*history::open(b.settings.history, b.reason));
    {
        sqlite3* db = nullptr;
        REQUIRE(sqlite3_open(b.settings.history.c_str(), &db) == SQLITE_OK);
        REQUIRE(sqlite3_exec(db,
                             "CREATE TRIGGER bad_page BEFORE INSERT ON incidents WHEN NEW.number = 2 "
                             "BEGIN SELECT RAISE(ABORT, 'malformed'); END",
                             nullptr, nullptr, nullptr) == SQLITE_OK);
        sqlite3_close(db);
    }
    int kept = 0;
    const auto keep = [&](std::uint64_t position, std::set<std::uint64_t> changed) -> task<void> {
        const auto number = *changed.begin();
        std::vector<kept_event> events{{app_error(1, position, "n01"), number}};
        kept += co_await w.keep(std::move(events), std::move(changed));
    };
    asio::co_spawn(io, keep(1, {1, 2, 3}), asio::detached);
    b.time.pass(io, 300ms);
    CHECK(kept == 1);
    CHECK(complaints.size() == 1);
    CHECK(complaints.at(0).find("f00002") != std::string::npos);
    // Nor what comes later, a second after what failed.
    asio::co_spawn(io, keep(2, {1}), asio::detached);
    b.time.pass(io, 690ms);
    CHECK(kept == 1);
    b.time.pass(io, 20ms);
    CHECK(kept == 2);
    CHECK(complaints.size() == 1);
    w.finish();
    auto book = history::open(b.settings.history, b.reason);
    REQUIRE(book);
    CHECK(*book->knows(app_error(1, 1, "n01")));
    CHECK(*book->knows(app_error(1, 2, "n01")));
    CHECK(book->find(1)->has_value());
    CHECK(book->find(3)->has_value());
    CHECK_FALSE(book->find(2)->has_value());
}

TEST_CASE("a question that nobody waits for any more is not asked", "[fault]") {
    controller_bench b;
    asio::io_context io;
    history_writer w(
        io, [](std::uint64_t) { return nullptr; }, [](const error&) {});
    w.begin(*history::open(b.settings.history, b.reason));
    gate shut;
    int asked = 0, answered = 0;  // the first on the history's thread, while this one waits for it
    const std::function<bool(history&)> hang = [&shut](history&) {
        shut();
        return true;
    };
    const std::function<bool(history&)> count = [&](history&) { return ++asked > 0; };
    const auto ask = [&](std::function<bool(history&)> what) -> task<void> {
        const auto got = co_await w.ask(std::move(what));
        answered += got.has_value();
    };
    asio::co_spawn(io, ask(hang), asio::detached);
    for (int n = 0; n < 100; ++n) asio::co_spawn(io, ask(count), asio::detached);
    b.time.pass(io, 1200ms);
    shut.open();
    b.time.pass(io, 200ms);
    CHECK(asked == 0);
    CHECK(answered == 0);
    asio::co_spawn(io, ask(count), asio::detached);
    b.time.pass(io, 200ms);
    CHECK(asked == 1);
    CHECK(answered == 1);
    w.finish();
}

TEST_CASE("what is left when a controller ends is written", "[fault]") {
    controller_bench b;
    asio::io_context io;
    incident i;
    i.number = 1;
    history_writer w(
        io, [&](std::uint64_t) { return &i; }, [](const error&) {});
    w.begin(*history::open(b.settings.history, b.reason));
    w.save_soon(1);  // is on its way
    i.cause = "later";
    w.save_soon(1);
    w.set_flag("breaker", true);
    w.finish();
    auto book = history::open(b.settings.history, b.reason);
    REQUIRE(book);
    CHECK((*book->find(1))->cause == "later");
    CHECK(*book->flag("breaker"));
}

TEST_CASE("which events came before", "[fault]") {
    using sight = seen_events::sight;
    seen_events seen(1'000'000);
    const auto at = [](std::uint64_t position, std::int64_t written_ms) {
        auto e = app_error(1, position, "n01");
        e.written_ms = written_ms;
        return e;
    };
    const auto e = at(1, 1'010'000);
    CHECK(seen.look(e) == sight::fresh);
    CHECK(seen.look(e) == sight::waiting);
    seen.forget(e);
    CHECK(seen.look(e) == sight::fresh);
    seen.keep("n01", e.key(), 1'010'000);
    CHECK(seen.look(e) == sight::kept);
    // A node has its share of what waits, and no more.
    std::uint64_t n = 2;
    for (; n < 2 + seen_events::max_waiting; ++n) REQUIRE(seen.look(at(n, 0)) == sight::fresh);
    CHECK(seen.look(at(n, 0)) == sight::refused);
    CHECK(seen.look(app_error(1, 1, "n02")) == sight::fresh);
    seen.keep("n01", at(2, 0).key(), 1'010'001);
    CHECK(seen.look(at(n, 0)) == sight::fresh);
    // Of what was written before this life, or by a clock that is wrong, nothing is known.
    auto unclear = e;
    unclear.written_ms.reset();
    CHECK_FALSE(seen.covers(unclear, 1'010'000));
    CHECK_FALSE(seen.covers(at(0, 1'004'000), 1'010'000));
    CHECK_FALSE(seen.covers(at(0, 1'090'000), 1'010'000));
    CHECK(seen.covers(e, 1'010'000));
    // Nor before the oldest whose key is still here.
    for (n = 1; n <= seen_events::max_kept; ++n) {
        const auto more = app_error(2, n, "n03");
        REQUIRE(seen.look(more) == sight::fresh);
        seen.keep("n03", more.key(), 1'020'000);
    }
    CHECK_FALSE(seen.covers(e, 1'020'000));
    seen.forget(at(3, 0));  // its node has room again
    CHECK(seen.look(e) == sight::fresh);
}

}  // namespace test_slow_history
