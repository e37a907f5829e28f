// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ckptd/daemon/encoding.hpp"
#include "ckptd/daemon/packing.hpp"

namespace test_encoding {

using namespace banyan::ckpt;
using namespace banyan::ckpt::agreement;
using banyan::ckpt::agreement::message;  // not what the keeper is sent
using nlohmann::json;

namespace {

constexpr limits most{3, 4, 1000};
const std::vector<std::uint32_t> ranks{1, 3};

std::vector<body> one_of_each() {
    const ballot b{7, 0xffffffffffffffff};
    const copy_key key{1ull << 44, 1000};
    inventory i{b,
                77,
                {{key, 0}, {{5, 6}, 3}},
                ballot{6, 9},
                key,
                copy_key{1, 2},
                true,
                copy_key{3, 4},
                {{"n7", "10.0.0.7"}, {"n8", ""}},
                {7, copy_key{1, 2}}};
    prepare p{b, {key, true, {{0}, {1, 2}, {}, {3}}, {{"n9", "10.0.0.9"}}}, 78};
    return {collect{b},
            i,
            p,
            prepared{b, {1, 3}},
            release{b, key, std::nullopt, true},
            released{b},
            outbid{b},
            again{true},
            vote{2, {{key, level::replicated, true}, {{1, 2}, level::memory}}, 5, 9},
            commit{key, level::memory},
            passed_over{key},
            still_needed{{key, 3}},
            let_go{{key, 0}}};
}

}  // namespace

TEST_CASE("what is encoded is decoded, whatever it is", "[agreement]") {
    const auto all = one_of_each();
    REQUIRE(all.size() == std::variant_size_v<body>);
    for (std::size_t i = 0; i < all.size(); ++i) {
        REQUIRE(all[i].index() == i);
        const auto text = encode({42, all[i]}, ranks).dump();
        INFO(text);
        const auto back = decode(json::parse(text), most);
        REQUIRE(back);
        CHECK(back->generation == 42);
        REQUIRE(back->what.index() == i);
        CHECK(encode(*back, ranks).dump() == text);
    }
    const auto brought = decode(encode({1, all[2]}, ranks), most);
    REQUIRE(brought);
    const auto& holders = std::get<prepare>(brought->what).what.holders;
    // Only of the ranks that were asked for.
    CHECK(holders == std::vector<std::vector<std::uint32_t>>{{}, {1, 2}, {}, {3}});
    CHECK(std::get<prepare>(brought->what).what.outside == std::vector<node_address>{{"n9", "10.0.0.9"}});
}

TEST_CASE("what is out of range, of another type or not there is refused", "[agreement]") {
    for (const auto& m : one_of_each()) {
        const auto good = encode({1, m}, ranks);
        for (const auto& [name, value] : good.items()) {
            // These may be missing.
            const bool optional = name == "accepted" || name == "replicated" || name == "forgetful" ||
                                  name == "storage" || name == "had" || name == "former" || name == "begun" ||
                                  name == "from" || name == "all_heard" ||
                                  (name == "key" && !std::holds_alternative<commit>(m) &&
                                   !std::holds_alternative<passed_over>(m));
            for (const json& bad :
                 {json(-1), json("x"), json(json::object()), json{1, 2, 3, 4, 5}, json(1.5)}) {
                auto changed = good;
                changed[name] = bad;
                INFO(changed.dump());
                CHECK_FALSE(decode(changed, most));
            }
            auto less = good;
            less.erase(name);
            INFO(less.dump());
            CHECK(decode(less, most).has_value() == optional);
        }
    }
    const auto refuses = [](const char* text) { CHECK_FALSE(decode(json::parse(text), most)); };
    refuses(R"({"generation":1,"is":"still_needed","what":[1,2,4]})");
    refuses(R"({"generation":1,"is":"still_needed","what":[1,1001,0]})");
    refuses(R"({"generation":1,"is":"commit","key":[1,2],"level":2})");
    refuses(R"({"generation":1,"is":"vote","rank":0,"first":1,"end":2,"kept":[[1,2,0]]})");
    refuses(R"({"generation":1,"is":"vote","rank":0,"first":1,"end":2,"kept":[[1,2,0,2]]})");
    refuses(R"({"generation":1,"is":"prepared","ballot":[1,2],"failed":[4]})");
    refuses(R"({"generation":1,"is":"prepare","ballot":[1,2],"life":1,"holders":[{"rank":0,"slots":[3]}]})");
    refuses(R"({"generation":1,"is":"prepare","ballot":[1,2],"life":1,"outside":["n9","a"],
                "holders":[{"rank":0,"slots":[4]}]})");
    refuses(R"({"generation":1,"is":"prepare","ballot":[1,2],"life":1,"outside":["n9"],"holders":[]})");
    refuses(
        R"({"generation":1,"is":"prepare","ballot":[1,2],"life":1,"outside":["n\u001b","a"],"holders":[]})");
    refuses(R"({"generation":1,"is":"nothing"})");
    refuses("[]");
}

TEST_CASE("what every step has is packed, and comes back as it was", "[agreement]") {
    std::vector<std::byte> packed;
    std::vector<message> sent;
    for (const auto& m : one_of_each()) {
        const auto before = packed.size();
        const bool done = pack({42, m}, packed);
        CHECK(done == (packed.size() != before));
        CHECK(done == (m.index() >= body(vote{}).index()));
        if (done) sent.push_back({42, m});
    }
    const auto back = unpack(packed, most);
    REQUIRE(back);
    REQUIRE(back->size() == sent.size());
    for (std::size_t i = 0; i < sent.size(); ++i) CHECK(encode((*back)[i], ranks) == encode(sent[i], ranks));
    CHECK(unpack({}, most)->empty());
}

TEST_CASE("of what is packed nothing is taken that is cut off, unknown or out of range", "[agreement]") {
    for (const auto& m : one_of_each()) {
        std::vector<std::byte> good;
        if (!pack({1, m}, good)) continue;
        for (std::size_t n = 1; n < good.size(); ++n) CHECK_FALSE(unpack(std::span(good).first(n), most));
        auto unknown = good;
        unknown[0] = std::byte{99};
        CHECK_FALSE(unpack(unknown, most));
    }
    const auto refuses = [](const body& m) {
        std::vector<std::byte> out;
        REQUIRE(pack({1, m}, out));
        CHECK_FALSE(unpack(out, most));
    };
    const copy_key good{1, 2}, late{1, 1001};
    refuses(vote{4, {{good, level::memory}}, 1, 1});
    refuses(vote{0, {{late, level::memory}}, 1, 1});
    refuses(commit{late, level::memory});
    refuses(commit{good, static_cast<level>(2)});
    refuses(passed_over{late});
    refuses(still_needed{{good, 4}});
    refuses(let_go{{late, 0}});
    std::vector<std::byte> none;
    REQUIRE(pack({1, let_go{{good, 0}}}, none));
    CHECK_FALSE(unpack(none, {0, 0, 1000}));  // of no rank at all
}

TEST_CASE("a frame of packed messages ends where it is full", "[agreement]") {
    std::vector<std::byte> out;
    std::size_t count = 0;
    while (pack({1, commit{{1, 2}, level::memory}}, out)) ++count;
    CHECK(out.size() <= most_packed);
    CHECK(unpack(out, most)->size() == count);
    CHECK_FALSE(pack({1, vote{0, std::vector<vote::one>(2000), 1, 1}}, out));
}

}  // namespace test_encoding
