// SPDX-License-Identifier: BSD-3-Clause
#include <random>

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include "common/text.hpp"

namespace test_hostlist {

using namespace banyan;

namespace {

std::size_t peak_kib() {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss);
}

std::string repeat(const std::string& text, int times) {
    std::string out;
    for (int i = 0; i < times; ++i) out += text;
    return out;
}

}  // namespace

TEST_CASE("host lists round trip and keep their order", "[common]") {
    const std::vector<std::string> names{"n03", "n01", "n02", "gpu9", "gpu10", "login"};
    CHECK(compress_hostlist(names) == "n[03,01-02],gpu9,gpu10,login");
    CHECK(expand_hostlist(compress_hostlist(names)).value() == names);
    CHECK(expand_hostlist("n[08-11]").value() == std::vector<std::string>{"n08", "n09", "n10", "n11"});
    CHECK(expand_hostlist("n[8-11]").value() == std::vector<std::string>{"n8", "n9", "n10", "n11"});
    CHECK(expand_hostlist("n[0-1]").value() == std::vector<std::string>{"n0", "n1"});
    CHECK(expand_hostlist("[1-2]").value() == std::vector<std::string>{"1", "2"});
    CHECK(expand_hostlist("").value().empty());
}

TEST_CASE("what is no host list is refused", "[common]") {
    for (const std::string bad : {"n[1-",
                                  "n[2-1]",
                                  "n[a]",
                                  ",",
                                  "n[1]x",
                                  "n[1-999999999999]",
                                  "a,,b",
                                  "n[[1-2]]",
                                  "n[1-2]]",
                                  "n]",
                                  "n[]",
                                  "n[1,]",
                                  "n[,1]",
                                  "n[-1]",
                                  "n[1--2]",
                                  "n[1-2-3]",
                                  "n[+1]",
                                  "n[ 1]",
                                  "a b",
                                  "a\nb",
                                  "a\x1b[1m",
                                  "n[1][2]",
                                  "n[18446744073709551615-18446744073709551616]",
                                  "n[0-18446744073709551615]",
                                  "n[99999999999999999999999]",
                                  "\x7f"}) {
        INFO(bad);
        CHECK_FALSE(expand_hostlist(bad));
    }
    CHECK_FALSE(expand_hostlist(std::string_view("a\0b", 3)));
}

TEST_CASE("a refusal shows no control character", "[common]") {
    const auto refused = expand_hostlist("a\n\x1b[31mfine");
    REQUIRE_FALSE(refused);
    for (const char c : refused.error().text()) CHECK(c >= ' ');
}

TEST_CASE("a short text cannot ask for much memory", "[common]") {
    const auto before = peak_kib();
    const std::string long_prefix(2000, 'x');
    const std::string bombs[] = {
        long_prefix + "[0-999998]",                      // what a user gave root's slurmstepd
        std::string(255, 'x') + "[0-65534]",             // each name short enough but for the number
        std::string(249, 'x') + "[0-65534]",             // all names short enough, too many bytes together
        "n[0-65536]",                                    // one name too many
        "n[0-999999999999999999]",                       // more than a counter of 32 bits
        "n[" + std::string(2000, '0') + "1-9]",          // width without a number
        "n[" + std::string(300, '0') + "-9]",            //
        "n[" + repeat("0-9999,", 20) + "0]",             // many ranges
        repeat(std::string(200, 'y') + "[0-9999],", 7),  // many items
        repeat("a,", 70000) + "a",                       // many names
    };
    for (const auto& bomb : bombs) {
        INFO(bomb.substr(0, 40));
        CHECK_FALSE(expand_hostlist(bomb));
    }
    CHECK(peak_kib() - before < 16 * 1024);
    CHECK(expand_hostlist("n[0-65535]").value().size() == 65536);
    CHECK_FALSE(expand_hostlist("n[0-65535],m"));
    CHECK(expand_hostlist("n[0-9]", {10, 20}).value().size() == 10);
    CHECK_FALSE(expand_hostlist("n[0-9]", {10, 19}));
    CHECK_FALSE(expand_hostlist("n[0-9]", {9, 20}));
}

TEST_CASE("whatever is expanded is within the limits and comes back", "[common]") {
    std::mt19937 random(7);
    const auto number = [&](std::uint32_t below) { return static_cast<std::uint32_t>(random() % below); };
    const hostlist_limits limits{500, 4000};
    int expanded = 0;
    for (int round = 0; round < 20000; ++round) {
        std::string text;
        for (auto parts = 1 + number(3); parts > 0; --parts) {
            text += std::string(1 + number(6), static_cast<char>('a' + number(3)));
            if (number(2) != 0) {
                const auto first = number(120);
                text += "[" + std::string(number(3), '0') + std::to_string(first) + "-" +
                        std::to_string(first + number(300)) + "]";
            }
            if (parts > 1) text += ",";
        }
        if (number(4) == 0) text[number(static_cast<std::uint32_t>(text.size()))] = "[],-0 \n"[number(7)];
        const auto names = expand_hostlist(text, limits);
        if (!names) continue;
        ++expanded;
        std::size_t bytes = 0;
        for (const auto& name : *names) bytes += name.size();
        INFO(text);
        REQUIRE(names->size() <= limits.names);
        REQUIRE(bytes <= limits.bytes);
        REQUIRE(expand_hostlist(compress_hostlist(*names)).value() == *names);
    }
    CHECK(expanded > 5000);
}

}  // namespace test_hostlist
