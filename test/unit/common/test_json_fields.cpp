// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"

namespace test_json_fields {

using namespace banyan;
using nlohmann::json;

namespace {

const json whole = json::parse(R"({
    "n": 7, "big": 18446744073709551615, "minus": -3, "half": 0.5, "yes": true, "text": "abc", "nothing": null,
    "list": [1, 2, 4294967296], "names": ["a", "bb"], "mixed": [{"x": 1}, 5],
    "deep": {"deeper": {"x": -1}, "rows": [{"id": 1}, {"id": "one"}]}})");

template <class T>
std::string why(const result<T>& r) {
    REQUIRE_FALSE(r);
    CHECK(r.error().code == errc::invalid_input);
    return r.error().what;
}

}  // namespace

TEST_CASE("fields of the expected type and range", "[json_fields]") {
    const json_fields in(whole);
    CHECK(in.number("n") == 7u);
    CHECK(in.number("n", 7) == 7u);
    CHECK(in.number("big") == UINT64_MAX);
    CHECK(in.integer("minus") == -3);
    CHECK(in.integer("n", 0, 7) == 7);
    CHECK(in.flag("yes") == true);
    CHECK(in.text("text", 3) == "abc");
    CHECK(*in.texts("names", 2) == std::vector<std::string>{"a", "bb"});
    CHECK(*in.numbers<std::uint64_t>("list", 3) == std::vector<std::uint64_t>{1, 2, 4294967296});
    CHECK(in.object("deep")->object("deeper")->integer("x") == -1);
    CHECK(in.list("mixed")->at(0).number("x") == 1u);
    constexpr std::string_view names[] = {"xyz", "abc"};
    CHECK(in.one_of("text", names) == 1u);
    CHECK(in.has("nothing"));
    CHECK_FALSE(in.has("other"));
}

TEST_CASE("an error names the path, what is there and what was expected", "[json_fields]") {
    const json_fields in(whole);
    CHECK(why(in.number("n", 6)) == "\"n\" is 7, expected a number from 0 to 6");
    CHECK(why(in.number("minus", 9)) == "\"minus\" is -3, expected a number from 0 to 9");
    CHECK(why(in.number("half", 9)) == "\"half\" is 0.5, expected a number from 0 to 9");
    CHECK(why(in.number("other", 9)) == "\"other\" is missing, expected a number from 0 to 9");
    CHECK(why(in.integer("big", -1, 1)) == "\"big\" is 18446744073709551615, expected a number from -1 to 1");
    CHECK(why(in.integer("minus", -2, 1)) == "\"minus\" is -3, expected a number from -2 to 1");
    CHECK(why(in.flag("n")) == "\"n\" is 7, expected true or false");
    CHECK(why(in.text("text", 2)) == "\"text\" is a text of 3 bytes, expected a text of at most 2 bytes");
    CHECK(why(in.text("nothing", 2)) == "\"nothing\" is null, expected a text of at most 2 bytes");
    CHECK(why(in.numbers("list", 3)) == "\"list[2]\" is 4294967296, expected a number from 0 to 4294967295");
    CHECK(why(in.numbers("list", 2)) == "\"list\" is a list of 3, expected a list of at most 2 numbers");
    CHECK(why(in.texts("mixed", 9, 4)) == "\"mixed[0]\" is an object, expected a text of at most 4 bytes");
    CHECK(why(in.object("yes")) == "\"yes\" is true, expected an object");
    CHECK(why(in.list("deep", 4)) == "\"deep\" is an object, expected a list of at most 4 objects");
    CHECK(why(in.list("mixed")->at(1).number("x", 1)) ==
          "\"mixed[1].x\" is missing, expected a number from 0 to 1");
    CHECK(why(in.object("deep")->list("rows")->at(1).number("id", 5)) ==
          "\"deep.rows[1].id\" is a text of 3 bytes, expected a number from 0 to 5");
    constexpr std::string_view names[] = {"open", "closed"};
    CHECK(why(in.one_of("text", names)) == "\"text\" is a text of 3 bytes, expected one of open, closed");
}

TEST_CASE("what is no object has no fields", "[json_fields]") {
    for (const auto& other : {json(), json(5), json("x"), json::array({1}), json(json::value_t::discarded)}) {
        const json_fields in(other);
        CHECK_FALSE(in.has("n"));
        CHECK_FALSE(in.number("n"));
        CHECK_FALSE(in.list("n"));
        CHECK_FALSE(in.object("n"));
    }
}

TEST_CASE("a field that may be missing", "[json_fields]") {
    const json_fields in(whole);
    std::string text = "before";
    bool yes = false;
    std::uint8_t small = 9;
    std::int32_t minus = 9;
    CHECK(in.may("other", text));
    CHECK(text == "before");
    CHECK(in.may("text", text));
    CHECK(text == "abc");
    CHECK(in.may("yes", yes));
    CHECK(yes);
    CHECK(in.may("n", small));
    CHECK(small == 7);
    CHECK(in.may("minus", minus));
    CHECK(minus == -3);
    CHECK(why(in.may("big", small)) == "\"big\" is 18446744073709551615, expected a number from 0 to 255");
    CHECK(why(in.may("n", text)).starts_with("\"n\" is 7, expected a text"));
    CHECK(small == 7);
}

}  // namespace test_json_fields
