// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <filesystem>
#include <random>
#include <span>

#include <banyan/topo/snapshot.hpp>
#include <catch2/catch.hpp>

#include "common/crc32c.hpp"
#include "common/file.hpp"
#include "fixtures.hpp"
#include "test/scratch_path.hpp"

namespace test_snapshot {

using namespace banyan;
using namespace banyan::topo;
using namespace banyan::topo::test;

TEST_CASE("a snapshot gives back the same model", "[topo]") {
    const auto f = model_of("ibnetdiscover-3level-sharp.txt");
    const auto bytes = encode_snapshot(f);
    const auto again = decode_snapshot(bytes).value();
    CHECK(encode_snapshot(again) == bytes);
    CHECK(again.hosts.size() == f.hosts.size());
    CHECK(again.leaf_groups[1].id == f.leaf_groups[1].id);
    CHECK(find_host(again, "gpu0007") == find_host(f, "gpu0007"));
}

TEST_CASE("a snapshot that is cut or changed anywhere is refused", "[topo]") {
    const auto bytes = encode_snapshot(model_of("ibnetdiscover-fattree3.txt"));
    std::mt19937 random(1);
    for (int i = 0; i < 500; ++i) {
        auto changed = bytes;
        changed[random() % changed.size()] ^= static_cast<char>(1 << random() % 8);
        CHECK_FALSE(decode_snapshot(changed));
        CHECK_FALSE(decode_snapshot(bytes.substr(0, random() % bytes.size())));
    }
    CHECK(decode_snapshot(bytes + "x").error().what.find("bytes") != std::string::npos);
    CHECK_FALSE(decode_snapshot("BNYNFAB"));
}

TEST_CASE("a snapshot whose indices point outside is refused, checksum or not", "[topo]") {
    auto f = model_of("ibnetdiscover-fattree3.txt");
    SECTION("leaf") { f.hcas[0].leaf = 100000; }
    SECTION("host") { f.leaf_groups[0].hosts[0] = 100000; }
    SECTION("link") { f.links[0].b.index = none; }
    SECTION("router as a link's end") { f.links[0].a.kind = node_kind::router; }
    SECTION("box") { f.switches[0].box = none; }
    SECTION("unsorted hosts") { std::swap(f.hosts[0], f.hosts[1]); }
    CHECK(decode_snapshot(encode_snapshot(f)).error().what.find("index") != std::string::npos);
}

TEST_CASE("a file that is missing or no snapshot names itself", "[topo]") {
    CHECK(load_snapshot("/nonexistent/fabric").error().what.find("/nonexistent/fabric") != std::string::npos);
    const auto path = banyan::testing::scratch_path("snapshot");
    REQUIRE(write_file_atomic(path, "not a snapshot"));
    CHECK(load_snapshot(path).error().what.find("does not begin") != std::string::npos);
    std::filesystem::remove(path);
}

TEST_CASE("a snapshot of another format is refused", "[topo]") {
    auto bytes = encode_snapshot(model_of("ibnetdiscover.txt"));
    const std::uint32_t older = 6;
    std::memcpy(bytes.data() + 8, &older, 4);
    CHECK(decode_snapshot(bytes).error().what.find("format 6, expected 7") != std::string::npos);
}

}  // namespace test_snapshot
