// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "fault/sources/kernel_log.hpp"
#include "fault/sources/kmsg_record.hpp"
#include "fault/sources/line_splitter.hpp"

namespace test_kmsg {

using namespace banyan::fault;

TEST_CASE("a record of the device is taken apart", "[fault]") {
    bool dirty = true;
    auto r = parse_kmsg("2,1234,5678901,-;NVRM: Xid (PCI:0000:5d:00): 79, x", dirty);
    CHECK(r.has_head);
    CHECK(r.sequence == 1234);
    CHECK(r.usec == 5678901);
    CHECK(r.text == "NVRM: Xid (PCI:0000:5d:00): 79, x");
    CHECK(r.priority == 2);
    CHECK_FALSE(dirty);
    r = parse_kmsg("6,1,2,-,caller=T1;a\\x0ab\\x1bc", dirty);
    CHECK(r.text == "a\nb c");
    CHECK(parse_kmsg("14,1,2,-;root wrote this", dirty).priority >> 3 == 1);
}

TEST_CASE("what is no record is plain text", "[fault]") {
    bool dirty = false;
    for (const char* line : {"plain", "6,1,2", "6,1,2,-", "x,1,2,-;y", "6,1,99999999999999999999999,-;y"}) {
        const auto r = parse_kmsg(line, dirty);
        CHECK_FALSE(r.has_head);
        CHECK(r.text == line);
    }
}

TEST_CASE("bad bytes are replaced and reported", "[fault]") {
    bool dirty = false;
    CHECK(parse_kmsg(std::string("a\0b", 3), dirty).text == "a b");
    CHECK(dirty);
    CHECK(parse_kmsg("a\xff\xc0z", dirty).text == "a??z");
    CHECK(dirty);
    CHECK(parse_kmsg("gr\xc3\xbc\xc3\x9f", dirty).text == "gr\xc3\xbc\xc3\x9f");
    CHECK_FALSE(dirty);
    CHECK(parse_kmsg("a\xc2\x9b"
                     "31m",
                     dirty)
              .text == "a 31m");
    CHECK(dirty);
    CHECK(parse_kmsg("cut \xe2\x82", dirty).text == "cut ??");
}

TEST_CASE("the driver's one message of three lines is three, no other record is more than one", "[fault]") {
    const auto lines = [](std::string_view record) {
        std::vector<std::string> found;
        kernel_log::lines_of_record(record, [&](std::string_view line) { found.emplace_back(line); });
        return found;
    };
    CHECK(lines("NVRM: The NVIDIA GPU 0000:13:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\n"
                "NVRM: fallen off the bus and is not responding to commands.\nwhat a user added") ==
          std::vector<std::string>{"NVRM: The NVIDIA GPU 0000:13:00.0",
                                   "NVRM: (PCI ID: 10de:2330) installed in this system has",
                                   "NVRM: fallen off the bus and is not responding to commands."});
    CHECK(lines("NVRM: The NVIDIA GPU 0000:13:00.0\nhas fallen") ==
          std::vector<std::string>{"NVRM: The NVIDIA GPU 0000:13:00.0", "has fallen"});
    CHECK(lines("a[1]: segfault\nNVRM: Xid (PCI:0000:13:00): 79, x") ==
          std::vector<std::string>{"a[1]: segfault"});
}

TEST_CASE("lines come whole, however the bytes come", "[fault]") {
    const std::string bytes = "one\n\ntwo\nthree";
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
        line_splitter splitter;
        std::vector<std::pair<std::string, std::uint64_t>> got;
        for (std::size_t at = 0; at < bytes.size(); at += piece)
            splitter.feed(std::string_view(bytes).substr(at, piece),
                          [&](auto line, auto offset) { got.emplace_back(line, offset); });
        CAPTURE(piece);
        REQUIRE(got.size() == 3);
        CHECK(got[0] == std::pair<std::string, std::uint64_t>("one", 0));
        CHECK(got[1] == std::pair<std::string, std::uint64_t>("", 4));
        CHECK(got[2] == std::pair<std::string, std::uint64_t>("two", 5));
        CHECK(splitter.position() == 9);  // "three" is not complete
    }
}

TEST_CASE("over-long lines are cut, and the next is right", "[fault]") {
    for (const std::size_t piece : {1u, 7u, 1000u}) {
        line_splitter splitter(10);
        const std::string bytes = std::string(500, 'x') + "\nok\n";
        std::vector<std::pair<std::string, std::uint64_t>> got;
        for (std::size_t at = 0; at < bytes.size(); at += piece)
            splitter.feed(std::string_view(bytes).substr(at, piece),
                          [&](auto line, auto offset) { got.emplace_back(line, offset); });
        REQUIRE(got.size() == 2);
        CHECK(got[0].first == std::string(10, 'x'));
        CHECK(got[1] == std::pair<std::string, std::uint64_t>("ok", 501));
        CHECK(splitter.cut_lines() == 1);
    }
}

}  // namespace test_kmsg
