// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "common/crc32c.hpp"
#include "common/crc32c_alone.hpp"
#include "common/text.hpp"

namespace test_text {

using namespace banyan;

// What split() returns points into the text.
template <typename T>
concept can_split = requires(T text) {
    split(std::forward<T>(text), ',');
};
static_assert(can_split<const std::string&> && can_split<std::string_view> && can_split<const char*>);
static_assert(!can_split<std::string>);

TEST_CASE("numbers refuse signs, blanks, text and overflow", "[common]") {
    CHECK(parse_number("42").value() == 42);
    for (const auto* bad :
         {"", "-1", "+1", " 1", "1 ", "1x", "18446744073709551616", "1000000000000000000000"}) {
        INFO(bad);
        CHECK_FALSE(parse_number(bad));
    }
    CHECK_FALSE(parse_number("11", 10));
}

TEST_CASE("sizes and durations", "[common]") {
    CHECK(parse_bytes("512").value() == 512);
    CHECK(parse_bytes("64K").value() == 65536);
    CHECK(parse_bytes("1.5GiB").value() == 1610612736);
    CHECK_FALSE(parse_bytes("1X"));
    CHECK_FALSE(parse_bytes("K"));
    CHECK_FALSE(parse_bytes("99999999999999T"));
    CHECK(parse_duration("250ms").value() == std::chrono::milliseconds(250));
    CHECK(parse_duration("2h").value() == std::chrono::hours(2));
    CHECK(parse_duration("7").value() == std::chrono::seconds(7));
    CHECK_FALSE(parse_duration("h"));
    CHECK_FALSE(parse_duration("5 s"));
}

TEST_CASE("key=value lists refuse doubled keys", "[common]") {
    const auto pairs = parse_key_values("dir=/a/b,every=1").value();
    REQUIRE(pairs.size() == 2);
    CHECK(pairs[0] == std::pair<std::string, std::string>("dir", "/a/b"));
    CHECK_FALSE(parse_key_values("a=1,a=2"));
    CHECK_FALSE(parse_key_values("a"));
    CHECK_FALSE(parse_key_values("a=1,,b=2"));
}

TEST_CASE("the nearest word is offered only when it is near", "[common]") {
    CHECK(nearest("evry", {"every", "flush"}) == "every");
    CHECK(nearest("zzzzzz", {"every", "flush"}).empty());
}

TEST_CASE("crc32c gives RFC 3720's test values and can be continued", "[common]") {
    std::vector<std::byte> zeros(32), ones(32, std::byte{0xff});
    CHECK(crc32c(zeros) == 0x8a9136aa);
    CHECK(crc32c_combine(crc32c(zeros), crc32c(ones), ones.size()) == crc32c(ones, crc32c(zeros)));
    CHECK(crc32c_combine(crc32c(ones), 0, 0) == crc32c(ones));
    CHECK(crc32c_combine(0, crc32c(ones), ones.size()) == crc32c(ones));
    CHECK(crc32c(ones) == 0x62a8ab43);
    const std::span all(ones);
    CHECK(crc32c(all.subspan(10), crc32c(all.first(10))) == crc32c(all));
}

// Around the lengths at which it goes on in other pieces, at any address.
TEST_CASE("crc32c without ISA-L gives what ISA-L gives", "[common]") {
    std::vector<std::byte> data(40'000);
    std::uint32_t random = 1;
    for (auto& b : data) b = static_cast<std::byte>((random = random * 1'664'525 + 1'013'904'223) >> 24);
    for (const std::size_t piece : {0, 1, 8, 256, 4096})
        for (const std::size_t times : {1, 2, 3, 6})
            for (const std::size_t more : {0, 1, 7, 8, 9})
                for (const std::size_t from : {0, 1, 5}) {
                    const auto bytes = std::span<const std::byte>(data).subspan(from, piece * times + more);
                    const auto begun = static_cast<std::uint32_t>(from * 0x12345679);
                    INFO(piece << " x " << times << " + " << more << " from " << from);
                    CHECK(crc32c_alone(bytes, begun) == crc32c(bytes, begun));
                    CHECK(crc32c_by_table(bytes, begun) == crc32c(bytes, begun));
                }
    CHECK(crc32c_alone(std::vector<std::byte>(32)) == 0x8a9136aa);
}

TEST_CASE("text of others is shown as one line without a command in it", "[common]") {
    using banyan::printable;
    CHECK(printable("plain, caf\u00e9, \u65e5\u672c, back\\slash") ==
          "plain, caf\u00e9, \u65e5\u672c, back\\slash");
    CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\x0dd");
    CHECK(printable("\x1b[2J\x7f") == "\\x1b[2J\\x7f");
    CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
    CHECK(printable("\u009b2J") == "\\xc2\\x9b2J");  // C1: the terminal's one-byte escape
    CHECK(printable("\x9b") == "\\x9b");             // not UTF-8
    CHECK(printable("\xc0\x8a|\xe0\x80\x8a|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82") ==
          "\\xc0\\x8a|\\xe0\\x80\\x8a|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe2\\x82");
    CHECK(printable("\u202e\u2028\u2066").find("\u202e") == std::string::npos);
    CHECK(banyan::is_printable("/lustre/run1"));
    CHECK_FALSE(banyan::is_printable("/lustre/\nrun1"));
}

}  // namespace test_text
