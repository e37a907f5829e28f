// SPDX-License-Identifier: BSD-3-Clause
//
// What a daemon writes of a session for the next one, and what that makes of it: of another release's, and of
// what is cut off or changed anywhere.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "ckptd/daemon/job_agreement.hpp"
#include "ckptd/daemon/remember.hpp"

namespace test_remember {

using namespace banyan::ckpt;
using nlohmann::json;

namespace {

constexpr auto generation = make_generation(2, 5);
constexpr std::uint32_t per_node = 2;
constexpr copy_key key{generation, 40};

std::shared_ptr<job_agreement> silent_agreement() {
    job_agreement::host h;
    h.spawn = [](banyan::task<void>) {};
    h.send = [](std::uint32_t, job_agreement::messages) -> banyan::task<banyan::result<void>> {
        co_return banyan::result<void>{};
    };
    h.tell = h.send;
    h.bring = [](agreement::prepare) {};
    h.keep = h.begin = h.fenced = h.changed = [] {};
    h.free = [](agreement::shelf::id) {};
    return std::make_shared<job_agreement>(std::move(h));
}

// Of node n1 of two, with a rank's memory and a copy for the other node.
struct kept_session {
    std::shared_ptr<memory_budget> budget = std::make_shared<memory_budget>(1u << 26);
    kept_memory memory;
    session s;

    kept_session() {
        s.request.job = 7;
        s.request.restart = 2;
        s.request.self = "n1";
        s.request.world = 2 * per_node;
        s.request.nodes = {{"n1", "n1", {0, 1}, 1}, {"n2", "n2.far", {2, 3}, 0}};
        s.request.spares = {{"n3", "n3"}};
        s.request.dir = "/store";
        s.request.flush = 10;
        s.slot = 0;
        s.generation = generation;
        s.agreed = silent_agreement();
        agreement::launch l;
        l.generation = generation;
        l.nodes = 2;
        l.world = 2 * per_node;
        l.slot_of_rank = {0, 0, 1, 1};
        l.nonce = 9;
        s.agreed->open(l);
        s.committed = s.durable = key;
        s.announced[generation + 1] = {{"n1", "n3"}, {1, 0}};
        auto made = shard_memory::make(budget, "banyan-test", 1u << 16);
        REQUIRE(made);
        memory[(*made)->number()] = *made;
        auto copy = std::make_shared<shard_copy>();
        copy->number = 3;
        copy->own = false;
        copy->rank = 2;
        copy->key = key;
        copy->bytes = 5000;
        copy->chunks = {17};
        copy->memory = *made;
        copy->checked = true;
        s.copies.push_back(copy);
        s.agreed->add({3, {key, 2}, false, true, {}});
        auto& r = s.ranks[1];
        r.generation = generation;
        r.saved = true;
        r.last = std::make_shared<const process>(::getpid(), process_start());
        r.began = r.last;
    }
    static std::uint64_t process_start() { return 1; }  // of nobody who lives
};

banyan::result<void> read(std::span<const std::uint8_t> text, const kept_memory& memory, session& into,
                          agreement::agreement& agreed) {
    into.agreed = silent_agreement();
    return recall(std::as_bytes(text), memory, into, agreed);
}

}  // namespace

TEST_CASE("a session is what it was after a daemon has written and another one read it", "[ckptd]") {
    kept_session k;
    const auto text = remember(k.s);
    session again;
    agreement::agreement agreed;
    REQUIRE(read(text, k.memory, again, agreed));
    CHECK(again.request == k.s.request);
    CHECK(again.addresses.at("n2") == "n2.far");
    CHECK(again.slot == 0u);
    CHECK(again.generation == generation);
    CHECK(again.committed == key);
    CHECK(again.durable == key);
    CHECK(again.announced.at(generation + 1).nodes == std::vector<std::string>{"n1", "n3"});
    CHECK(again.ranks.at(1).saved);
    CHECK(again.ranks.at(1).began == again.ranks.at(1).last);
    REQUIRE(again.copies.size() == 1);
    CHECK(again.copies[0]->chunks == std::vector<std::uint32_t>{17});
    CHECK(agreed.generation() == generation);
    CHECK(agreed.copies().find({key, 2}, false) != nullptr);
    // Its request is written anew when it changes, and only then.
    k.s.request.nodes[1].name = "n4";
    const auto changed = remember(k.s);
    CHECK(changed != text);
    CHECK(remember(k.s) == changed);
}

TEST_CASE("a process that lives on holds its rank, unless it has ended its use of the library", "[ckptd]") {
    const bool finalized = GENERATE(false, true);
    kept_session k;
    auto& r = k.s.ranks[1];
    r.last = std::make_shared<const process>(::getpid(), process::started_of(::getpid()));
    r.owner = 5;
    r.process = r.last;
    if (finalized) r.finalized = r.last;
    session again;
    agreement::agreement agreed;
    REQUIRE(read(remember(k.s), k.memory, again, agreed));
    const auto& back = again.ranks.at(1);
    CHECK(back.last->alive());
    CHECK((back.finalized == back.last) == finalized);
    CHECK(back.owner == (finalized ? 0 : former_owner));
    CHECK((back.process == nullptr) == finalized);
}

TEST_CASE("a rank that still waits for its memory is kept as itself", "[ckptd]") {
    kept_session k;
    const auto me = std::make_shared<const process>(::getpid(), process::started_of(::getpid()));
    auto& waits = k.s.ranks[3];  // as a process leaves it that has asked for its memory
    waits.last = waits.process = me;
    waits.owner = 5;
    auto& zero = k.s.ranks[0];
    zero.saved = true;
    const auto text = remember(k.s);
    session again;
    agreement::agreement agreed;
    REQUIRE(read(text, k.memory, again, agreed));
    REQUIRE(again.ranks.size() == 3);
    CHECK(again.ranks.at(3).process->pid() == ::getpid());
    CHECK(again.ranks.at(0).process == nullptr);
    CHECK(again.ranks.at(0).saved);
    // Of an earlier build, which called it rank 0.
    auto before = json::from_cbor(text);
    for (auto& r : before["ranks"])
        if (r["rank"] == 3) r["rank"] = 0;
    session of_before;
    REQUIRE(read(json::to_cbor(before), k.memory, of_before, agreed));
    CHECK(of_before.ranks.at(0).process == nullptr);
    CHECK(of_before.ranks.at(0).saved);
}

TEST_CASE("that a later launch rests on what is held is kept, too", "[ckptd]") {
    constexpr auto later = make_generation(3, 0);
    kept_session k;
    k.s.agreed->end_launch(later);
    const auto text = remember(k.s);
    session again;
    agreement::agreement agreed;
    REQUIRE(read(text, k.memory, again, agreed));
    CHECK_FALSE(agreed.end_launch(later));  // no news
    // An earlier build has not written it.
    auto before = json::from_cbor(text);
    REQUIRE(before["agreed"].erase("over") == 1);
    session of_before;
    REQUIRE(read(json::to_cbor(before), k.memory, of_before, agreed));
    CHECK(agreed.end_launch(later));
}

TEST_CASE("a state with a name is kept under it, as no daemon that knows of none reads it", "[ckptd]") {
    kept_session k;
    CHECK_FALSE(json::from_cbor(remember(k.s)).contains("state"));
    const auto version_of_jobs = json::from_cbor(remember(k.s))["version"].get<unsigned>();
    k.s.state = "ema";
    auto text = json::from_cbor(remember(k.s));
    CHECK(text["version"] == version_of_jobs + 1);
    session again;
    agreement::agreement agreed;
    REQUIRE(read(json::to_cbor(text), k.memory, again, agreed));
    CHECK(again.state == "ema");
    CHECK(again.committed == key);
    for (const char* name : {"", "..", "Ema"}) {
        auto wrong = text;
        wrong["state"] = name;
        session s;
        CHECK_FALSE(read(json::to_cbor(wrong), k.memory, s, agreed));
    }
    text["version"] = version_of_jobs;
    session s;
    CHECK_FALSE(read(json::to_cbor(text), k.memory, s, agreed));
}

TEST_CASE("a state's place is read again, however long its job's is", "[ckptd]") {
    kept_session k;
    k.s.state = std::string(32, 'e');
    k.s.request.dir = "/" + std::string(2999, 'd') + "/states/" + k.s.state;
    session again;
    agreement::agreement agreed;
    REQUIRE(read(remember(k.s), k.memory, again, agreed));
    CHECK(again.request == k.s.request);
    k.s.request.dir.insert(1, "d");
    session longer;
    CHECK_FALSE(read(remember(k.s), k.memory, longer, agreed));
}

TEST_CASE("memory whose header is not at its begin is none to a daemon that would look there", "[ckptd]") {
    kept_session k;
    constexpr joined_shape with_lead{huge_page_bytes, 3};
    auto file = shard_memory::make(k.budget, "banyan-test", huge_page_bytes + 3 * page_bytes);
    REQUIRE(file);
    k.memory = {{(*file)->number(), *file}};
    auto whole = shard_memory::join({*file}, with_lead);
    REQUIRE(whole);
    auto& r = k.s.ranks[1];
    r.memory = *whole;
    r.buffers = 3;
    r.buffer_bytes = page_bytes;
    std::uint64_t sequence = 0;
    {
        auto& header = *new (r.memory->data()) rank_memory_header{};
        header.magic = rank_memory_magic();
        begin_write(header.buffer[2]);
        sequence = end_write(header.buffer[2], key.step, generation, 100);
    }
    auto copy = k.s.copies.front();
    copy->memory = r.memory;
    copy->rank = 1;
    copy->own = true;
    copy->bytes = 100;
    copy->buffer = 2;
    copy->offset = buffer_offset(2, page_bytes);
    copy->sequence = sequence;
    const auto text = remember(k.s);
    // As a release reads it that knows of parts and of no lead.
    for (const auto& one : {json::from_cbor(text)["ranks"][0], json::from_cbor(text)["copies"][0]})
        CHECK(one["memory"]["parts"].empty());
    session again;
    agreement::agreement agreed;
    REQUIRE(read(text, k.memory, again, agreed));
    REQUIRE(again.ranks.at(1).memory);
    CHECK(again.ranks.at(1).memory->shape() == with_lead);
    REQUIRE(again.copies.size() == 1);
    CHECK(again.copies[0]->sequence == sequence);
    // As releases have written it that had a lead and this key.
    auto before = json::from_cbor(text);
    for (auto* one : {&before["ranks"][0]["memory"], &before["copies"][0]["memory"]}) {
        (*one)["parts"] = (*one)["files"];
        one->erase("files");
    }
    session of_before;
    REQUIRE(read(json::to_cbor(before), k.memory, of_before, agreed));
    CHECK(of_before.copies.size() == 1);
}

TEST_CASE("a copy that is lost while it is flushed is found no more, and goes when the flush is over",
          "[ckptd]") {
    kept_session k;
    const auto copy = k.s.copies.front();
    copy->pinned = true;
    k.s.lose_copy(copy);
    CHECK(k.s.find_copy(2, key) == nullptr);
    CHECK(k.s.agreed->rules().copies().find({key, 2}, false) == nullptr);
    CHECK(k.s.copies.size() == 1);  // nobody takes its memory
    k.s.unpin(copy);
    CHECK(copy->dropped);
    CHECK(k.s.copies.empty());
}

TEST_CASE("a copy that is only flushed yet is no better than one that is needed", "[ckptd]") {
    kept_session k;
    const auto flushed = k.s.copies.front();
    flushed->pinned = true;
    k.s.drop_copy(flushed);
    CHECK(k.s.find_copy(2, key) == flushed);  // the flush goes on
    const auto needed = std::make_shared<shard_copy>();
    needed->number = 4;
    needed->rank = 2;
    needed->key = key;
    needed->checked = true;
    needed->memory = flushed->memory;
    k.s.copies.insert(GENERATE(false, true) ? k.s.copies.begin() : k.s.copies.end(), needed);
    CHECK(k.s.find_copy(2, key) == needed);
}

TEST_CASE("a copy whose memory is not there is lost, to the agreement too", "[ckptd]") {
    kept_session k;
    session again;
    agreement::agreement agreed;
    REQUIRE(read(remember(k.s), {}, again, agreed));
    CHECK(again.copies.empty());
    CHECK(agreed.copies().copies().empty());
}

TEST_CASE("another release's session, and one that is damaged anywhere, is an error and nothing worse",
          "[ckptd]") {
    kept_session k;
    const auto text = remember(k.s);
    auto other = json::from_cbor(text);
    other["version"] = other["version"].get<unsigned>() + 1;
    session into;
    agreement::agreement agreed;
    const auto refused = read(json::to_cbor(other), k.memory, into, agreed);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().what == "another version's session was kept");
    for (std::size_t size = 0; size < text.size(); ++size) {
        session s;
        agreement::agreement a;
        CHECK_FALSE(read(std::span(text).first(size), k.memory, s, a));
    }
    // The ledger's checksum lets none of these through; they stand for a daemon that wrote something else.
    for (std::size_t at = 0; at < text.size(); ++at)
        for (const int flip : {0x01, 0x20, 0x80, 0xff}) {
            auto damaged = text;
            damaged[at] = static_cast<std::uint8_t>(damaged[at] ^ flip);
            session s;
            agreement::agreement a;
            (void)read(damaged, k.memory, s, a);
        }
}

}  // namespace test_remember
