// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ckptd/daemon/request.hpp"

namespace test_request {

using namespace banyan::ckpt;
using nlohmann::json;

namespace {

json good() {
    return json::parse(
        R"({"job":1,"restart":0,"uid":5,"gid":5,"self":"a","world":4,"dir":"/x","every":1,"flush":2,"buffers":3,
        "bytes":0,"nodes":[{"name":"a","addr":"","ranks":[0,1],"buddy":1},{"name":"b","addr":"h","ranks":[2,3],"buddy":0}],
        "spares":[{"name":"c","addr":""}]})");
}

void refused(const char* pointer, const json& value) {
    auto meta = good();
    meta[json::json_pointer(pointer)] = value;
    INFO(pointer << " = " << value.dump());
    CHECK_FALSE(parse_session(meta));
}

}  // namespace

TEST_CASE("a session is taken only when it is consistent", "[ckptd]") {
    const auto r = parse_session(good());
    REQUIRE(r);
    CHECK(r->nodes[0].addr == "a");
    CHECK(r->nodes[1].addr == "h");
    refused("/job", 0);
    refused("/job", -1);
    refused("/job", "1");
    refused("/world", 3);
    refused("/world", 5);
    refused("/world", 4'000'000'000u);
    refused("/self", "z");
    refused("/buffers", 1);
    refused("/buffers", 9);
    refused("/dir", "relative");
    refused("/nodes/0/buddy", 2);
    refused("/nodes/0/ranks", json::array({0, 2}));
    refused("/nodes/0/ranks", json::array({0, 99}));
    refused("/nodes/0/ranks", "all");
    refused("/nodes/1/name", "a");
    refused("/spares/0/name", "a");
    refused("/nodes", 7);
    refused("/bytes", 1ull << 60);
    refused("/nodes/0/name", std::string(1000, 'x'));
}

TEST_CASE("a step's nodes come from the session", "[ckptd]") {
    const auto r = parse_session(good());
    REQUIRE(r);
    const auto nodes = [&](const char* text) { return parse_step_nodes(json::parse(text), *r); };
    CHECK(nodes(R"({"nodes":["c","b"]})"));
    CHECK_FALSE(nodes(R"({"nodes":["c"]})"));
    CHECK_FALSE(nodes(R"({"nodes":["b","b"]})"));
    CHECK_FALSE(nodes(R"({"nodes":["b","evil"]})"));
    CHECK_FALSE(nodes(R"({"nodes":[1,2]})"));
    CHECK_FALSE(nodes(R"({})"));
}

}  // namespace test_request
