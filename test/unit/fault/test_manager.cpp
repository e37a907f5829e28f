// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the subnet manager answers: sminfo's words as a real one prints them, and what follows from them.
#include <catch2/catch.hpp>

#include "fault/fabric/manager.hpp"

namespace test_manager {

using namespace banyan;
using namespace banyan::fault;

namespace {

using said = manager_look::said;
using kind = manager_news::kind;

command_output printed(std::string text, int code = 0, std::string last_line = {}) {
    command_output out;
    out.text = std::move(text);
    out.last_line = std::move(last_line);
    out.end.code = code;
    return out;
}

manager_look answers(std::uint32_t lid, std::uint64_t guid) {
    return {said::master, {guid, lid}, "it answers"};
}
const manager_look silence{said::nobody, {}, "sminfo: iberror: failed: query"};
const manager_look unseen{said::unknown, {}, "can't open UMAD port"};

}  // namespace

TEST_CASE("what sminfo prints", "[fault]") {
    const auto master = read_sminfo(
        printed("sminfo: sm lid 1 sm guid 0x100001, activity count 59 priority 5 state 3 SMINFO_MASTER\n"));
    CHECK(master.answer == said::master);
    CHECK(master.who.lid == 1);
    CHECK(master.who.guid == 0x100001);
    CHECK(master.who.text() == "LID 1 (0x0000000000100001)");
    const auto standby = read_sminfo(
        printed("x\nsminfo: sm lid 3 sm guid 0x100003, activity count 6 priority 5 state 2 SMINFO_STANDBY"));
    CHECK(standby.answer == said::other);
    CHECK(standby.words.find("SMINFO_STANDBY") != std::string::npos);
    CHECK(read_sminfo(printed("", 255, "sminfo: iberror: failed: query")).answer == said::nobody);
    auto late = printed("");
    late.stopped = command_output::stop::late;
    CHECK(read_sminfo(late).answer == said::nobody);
    // It could not even ask.
    for (const char* why :
         {"ibwarn: [7] mad_rpc_open_port: can't open UMAD port ((null):0)", "", "sminfo: usage"})
        CHECK(read_sminfo(printed("", 1, why)).answer == said::unknown);
    CHECK(read_sminfo(fail(errc::not_found, "there is no sminfo")).answer == said::unknown);
    for (const char* text :
         {"", "sminfo: sm lid", "sminfo: sm lid 1 sm guid 0x", "a sminfo: sm lid 1 sm guid 0x1 state 3 M",
          "sminfo: sm lid 1 sm guid 0x1, state", "\xff\xfe"})
        CHECK(read_sminfo(printed(text)).answer == said::unknown);
}

TEST_CASE("silence is told once, after a while", "[fault]") {
    manager_memory memory(10'000);
    const auto first = memory.take(answers(1, 0xa), 0);
    REQUIRE(first);
    CHECK(first->what == kind::master);
    CHECK_FALSE(memory.take(answers(1, 0xa), 5'000));
    CHECK_FALSE(memory.take(silence, 6'000));
    CHECK(memory.is_silent());
    CHECK_FALSE(memory.is_overdue(15'999));
    CHECK_FALSE(memory.take(unseen, 15'000));  // says nothing either way
    CHECK(memory.is_overdue(16'000));
    const auto news = memory.tell_silence();
    REQUIRE(news);
    CHECK(news->what == kind::silent);
    CHECK(news->who.lid == 1);
    CHECK(news->words == silence.words);
    CHECK_FALSE(memory.tell_silence());
    CHECK_FALSE(memory.is_overdue(99'000));
    const auto back = memory.take(answers(2, 0xa), 100'000);  // with another LID
    REQUIRE(back);
    CHECK(back->what == kind::master);
    CHECK_FALSE(memory.is_silent());
}

TEST_CASE("a restart within the grace is nothing", "[fault]") {
    manager_memory memory(10'000);
    (void)memory.take(answers(1, 0xa), 0);
    (void)memory.take(silence, 1'000);
    CHECK_FALSE(memory.take(answers(1, 0xa), 9'000));
    CHECK_FALSE(memory.is_overdue(90'000));
    CHECK_FALSE(memory.tell_silence());
}

TEST_CASE("another master is told, with the one before", "[fault]") {
    manager_memory memory(10'000);
    (void)memory.take(answers(1, 0xa), 0);
    auto news = memory.take(answers(3, 0xc), 1'000);
    REQUIRE(news);
    CHECK(news->what == kind::replaced);
    CHECK(news->who.guid == 0xa);
    CHECK(news->next.guid == 0xc);
    (void)memory.take(silence, 2'000);
    (void)memory.tell_silence();
    news = memory.take(answers(1, 0xa), 60'000);
    REQUIRE(news);
    CHECK(news->what == kind::replaced);
    CHECK(news->who.guid == 0xc);
}

TEST_CASE("one that was never seen is missed, too", "[fault]") {
    manager_memory memory(1'000);
    (void)memory.take(silence, 5'000);
    CHECK(memory.is_overdue(6'000));
    const auto news = memory.tell_silence();
    REQUIRE(news);
    CHECK(news->who.guid == 0);
}

}  // namespace test_manager
