// SPDX-License-Identifier: BSD-3-Clause
//
// Generated fabrics: sound where nothing was planted, and where something was, the dump differs from the
// sound one in just that. The text is judged by the reader's plain records, never by the model's findings.
#include <map>
#include <set>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/reader.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "topo/generate/generate.hpp"

namespace test_generate {

using namespace banyan::topo;
using generate::defect_kind;

namespace {

struct seat {
    guid peer = 0;
    std::uint16_t port = 0;
    link_rate rate;
    auto operator<=>(const seat& o) const { return std::pair(peer, port) <=> std::pair(o.peer, o.port); }
    bool operator==(const seat& o) const { return peer == o.peer && port == o.port; }
};

struct record {
    std::string name;
    std::map<std::uint16_t, seat> ports;
    int times = 0;
};

using records = std::map<guid, record>;

records records_of(const std::string& text) {
    const auto d = read_ibnetdiscover(text);
    REQUIRE(d);
    CHECK(d->complaints.empty());
    records out;
    for (const auto& n : d->nodes) {
        auto& r = out[n.id];
        r.name = n.name;
        ++r.times;
        for (const auto& p : d->ports_of(n)) r.ports[p.port] = {p.peer, p.peer_port, p.rate};
    }
    return out;
}

generate::generated made(const generate::options& o) {
    auto g = generate::generate(o);
    INFO((g ? "" : g.error().text()));
    REQUIRE(g);
    return std::move(*g);
}

/// One kind alone, at a tenth of what can have it unless told otherwise; and the same fabric without.
struct spoilt {
    explicit spoilt(defect_kind kind, generate::options o = {}, double rate = 0.1) {
        o.hosts = o.hosts == 64 ? 256 : o.hosts;
        before = records_of(made(o).text);
        o.rates[static_cast<std::size_t>(kind)] = rate;
        auto g = made(o);
        after = records_of(g.text);
        facts = std::move(g.facts);
        CHECK(facts.defects.size() >= 2);
        // A large share may not fit without overlap.
        if (rate <= 0.1) CHECK(facts.defects.size() == facts.asked[static_cast<std::size_t>(kind)]);
        for (const auto& d : facts.defects) CHECK(d.kind == kind);
    }
    guid named(const std::string& name) const {
        for (const auto& [id, r] : before)
            if (r.name == name) return id;
        FAIL("no node is called " << name);
        return 0;
    }
    /// "name port 3"
    std::pair<guid, std::uint16_t> end(const std::string& text) const {
        const auto at = text.rfind(" port ");
        REQUIRE(at != std::string::npos);
        return {named(text.substr(0, at)), static_cast<std::uint16_t>(std::stoi(text.substr(at + 6)))};
    }
    records before, after;
    generate::truth facts;
};

guid number(const std::string& hex) { return std::stoull(hex, nullptr, 16); }

void check_both_ends(const records& all) {
    for (const auto& [id, r] : all)
        for (const auto& [port, to] : r.ports) {
            INFO(r.name << " port " << port);
            REQUIRE(all.contains(to.peer));
            const auto& peer = all.at(to.peer).ports;
            REQUIRE(peer.contains(to.port));
            CHECK(peer.at(to.port) == seat{id, port, {}});
            CHECK(peer.at(to.port).rate == to.rate);
        }
}

std::set<guid> lost_peers(const record& before, const record& after) {
    std::set<guid> out;
    for (const auto& [port, to] : before.ports)
        if (!after.ports.contains(port)) out.insert(to.peer);
    return out;
}

}  // namespace

TEST_CASE("sound fabrics of every shape have both ends of each link and no defect", "[topo][generate]") {
    struct shape {
        const char* name;
        generate::options o;
        unsigned levels;
    };
    std::vector<shape> shapes{{"rail", {}, 2},   {"fat tree", {}, 2},     {"racks", {}, 2},
                              {"planes", {}, 2}, {"spine groups", {}, 3}, {"everything", {}, 3}};
    shapes[1].o.rails = 1;
    shapes[1].o.hosts = 100;
    shapes[2].o.hosts = 72;
    shapes[2].o.group_size = shapes[2].o.rack_size = 18;
    shapes[2].o.rails = 4;
    shapes[3].o.planes = 4;
    shapes[3].o.rate = "1xXDR";
    shapes[4].o.hosts = 256;
    shapes[4].o.levels = 3;
    shapes[5].o = shapes[4].o;
    shapes[5].o.sharp = shapes[5].o.shuffle = true;
    shapes[5].o.ufm_hosts = 2;
    shapes[5].o.storage_servers = 3;
    shapes[5].o.oversubscription = 2;
    for (const auto& s : shapes) {
        INFO(s.name);
        const auto g = made(s.o);
        check_both_ends(records_of(g.text));
        CHECK(g.facts.defects.empty());
        CHECK(g.facts.hosts.size() == s.o.hosts);
        CHECK(g.facts.hcas.size() == std::size_t{s.o.hosts} * s.o.rails);
        CHECK(g.facts.groups.size() == (s.o.hosts + s.o.group_size - 1) / s.o.group_size);
        const auto f = build_fabric(*read_ibnetdiscover(g.text));
        CHECK(levels(f) == s.levels);
        for (const auto& d : f.defects)
            if (!is_notice(d)) FAIL_CHECK(d.kind << ": " << d.evidence);
    }
}

TEST_CASE("the oversubscription is the one asked for", "[topo][generate]") {
    generate::options o;
    o.hosts = 128;
    for (const double asked : {1.0, 2.0, 4.0}) {
        o.oversubscription = asked;
        CHECK(oversubscription(build_fabric(*read_ibnetdiscover(made(o).text))) ==
              Approx(asked).epsilon(0.01));
    }
}

TEST_CASE("the same options give the same text, another seed another order", "[topo][generate]") {
    generate::options o;
    o.shuffle = true;
    o.rates.fill(0.02);
    const auto one = made(o).text;
    CHECK(made(o).text == one);
    o.seed = 2;
    CHECK(made(o).text != one);
    // The subnet manager's host stays first: ibsim attaches there.
    CHECK(one.find("Ca\t") == one.find("Ca\t1 \"H-a088c20200000000\"\t\t# \"sm01 mlx5_0\"\n"));
    CHECK(one.find("Switch\t") > one.find("sm01"));
}

TEST_CASE("a missing leaf and its HCAs are not in the dump", "[topo][generate]") {
    generate::options o;
    o.hosts = 640;
    const spoilt s(defect_kind::missing_leaf, o);
    CHECK(s.before.size() - s.after.size() == s.facts.defects.size() * 33);
    for (const auto& d : s.facts.defects) CHECK(d.objects.size() == 7);
    check_both_ends(s.after);
}

TEST_CASE("uplinks are missing from the switches named, and each explains its gaps best",
          "[topo][generate]") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        generate::options o;
        o.spines = 4;  // few, so that many leaves might meet on one
        o.seed = seed;
        const spoilt s(defect_kind::missing_uplink, o, 0.3);
        check_both_ends(s.after);
        std::map<guid, std::set<guid>> lost, lost_by_upper;
        for (const auto& d : s.facts.defects) {
            const auto id = s.named(d.objects.at(0));
            lost[id] = lost_peers(s.before.at(id), s.after.at(id));
            CHECK_FALSE(lost[id].empty());
            CHECK(s.after.at(id).ports.size() > 32);  // some way up is left, beside its 32 hosts
            for (const auto upper : lost[id]) lost_by_upper[upper].insert(id);
        }
        for (const auto& [id, r] : s.before)
            if (!lost.contains(id)) CHECK(lost_peers(r, s.after.at(id)) == lost_by_upper[id]);
        for (const auto& [id, uppers] : lost)
            for (const auto upper : uppers) CHECK(lost_by_upper[upper].size() <= uppers.size());
    }
}

TEST_CASE("an asymmetric spine lost more leaves than any leaf lost spines", "[topo][generate]") {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        generate::options o;
        o.hosts = 24;
        o.group_size = 8;
        o.rails = 4;
        o.spines = 16;  // many above few leaves
        o.links = 1;
        o.seed = seed;
        const spoilt s(defect_kind::asymmetric_spine, o, 0.5);
        check_both_ends(s.after);
        for (const auto& d : s.facts.defects) {
            const auto id = s.named(d.objects.at(0));
            const auto lost = lost_peers(s.before.at(id), s.after.at(id));
            CHECK(lost.size() >= 3);
            for (const auto leaf : lost)
                CHECK(lost_peers(s.before.at(leaf), s.after.at(leaf)).size() < lost.size());
        }
    }
}

TEST_CASE("swapped cables lead where the other's led", "[topo][generate]") {
    for (const std::uint32_t planes : {1u, 4u}) {
        generate::options o;
        o.planes = planes;
        const spoilt s(defect_kind::swapped_cables, o);
        check_both_ends(s.after);
        for (const auto& d : s.facts.defects) {
            const auto a = s.named(d.objects.at(0)), b = s.named(d.objects.at(1));
            CHECK(a != b);
            CHECK(s.after.at(a).ports == s.before.at(b).ports);
            CHECK(s.after.at(b).ports == s.before.at(a).ports);
        }
    }
}

TEST_CASE("an HCA on a foreign leaf is on its rail of another group", "[topo][generate]") {
    const spoilt s(defect_kind::foreign_leaf);
    check_both_ends(s.after);
    for (const auto& d : s.facts.defects) {
        const auto id = s.named(d.objects.at(0));
        const auto& leaf = s.after.at(s.after.at(id).ports.at(1).peer).name;
        const auto& t =
            *std::find_if(s.facts.hcas.begin(), s.facts.hcas.end(), [&](auto& h) { return h.id == id; });
        const auto group = s.facts.hosts[t.host].group;
        CHECK(t.leaf_group != group);
        CHECK(s.facts.groups[t.leaf_group].leaves[t.rail] == std::vector{leaf});
        CHECK(t.name.ends_with("mlx5_" + std::to_string(t.rail)));
    }
}

TEST_CASE("a missing rail is one HCA that is gone with its cable", "[topo][generate]") {
    const spoilt s(defect_kind::missing_rail);
    check_both_ends(s.after);
    CHECK(s.before.size() - s.after.size() == s.facts.defects.size());
    std::set<std::string> hosts;
    for (const auto& d : s.facts.defects) hosts.insert(d.objects.at(0));
    CHECK(hosts.size() == s.facts.defects.size());
    for (const auto& [id, r] : s.before)
        if (!s.after.contains(id)) CHECK(hosts.contains(r.name.substr(0, r.name.find(' '))));
}

TEST_CASE("names are doubled and forgotten as told, everywhere", "[topo][generate]") {
    const spoilt doubled(defect_kind::duplicate_name);
    check_both_ends(doubled.after);
    for (const auto& d : doubled.facts.defects) {
        const auto a = number(d.objects.at(0)), b = number(d.objects.at(1));
        CHECK(a != b);
        CHECK(doubled.after.at(a).name == doubled.after.at(b).name);
        CHECK(doubled.before.at(a).name != doubled.before.at(b).name);
    }
    const spoilt forgotten(defect_kind::factory_name);
    std::size_t renamed = 0;
    for (const auto& [id, r] : forgotten.after)
        renamed +=
            r.name == "MT4129 ConnectX7   Mellanox Technologies" && forgotten.before.at(id).name != r.name;
    CHECK(renamed == forgotten.facts.defects.size());
}

TEST_CASE("records are lost and repeated as told", "[topo][generate]") {
    generate::options o;
    o.rates[static_cast<std::size_t>(defect_kind::no_record)] = 0.05;
    o.rates[static_cast<std::size_t>(defect_kind::duplicate_guid)] = 0.05;
    const auto g = made(o);
    const auto all = records_of(g.text);
    for (const auto& d : g.facts.defects) {
        const auto id = number(d.objects.at(0));
        if (d.kind == defect_kind::duplicate_guid) {
            CHECK(all.at(id).times == 2);
            continue;
        }
        CHECK_FALSE(all.contains(id));
        const auto names = std::count_if(all.begin(), all.end(), [&](const auto& r) {
            return std::any_of(r.second.ports.begin(), r.second.ports.end(),
                               [&](auto& p) { return p.second.peer == id; });
        });
        CHECK(names == 1);  // its leaf
    }
}

TEST_CASE("single links are one-way, narrow or slow as told", "[topo][generate]") {
    const spoilt silent(defect_kind::one_way_link), narrow(defect_kind::narrow_link),
        slow(defect_kind::slow_link);
    for (const auto& d : silent.facts.defects) {
        const auto a = silent.end(d.objects.at(0)), b = silent.end(d.objects.at(1));
        CHECK(silent.before.at(a.first).ports.at(a.second) == seat{b.first, b.second, {}});
        CHECK(silent.after.at(a.first).ports.contains(a.second) !=
              silent.after.at(b.first).ports.contains(b.second));
    }
    for (const auto* s : {&narrow, &slow}) {
        check_both_ends(s->after);
        std::size_t changed = 0;
        for (const auto& [id, r] : s->after)
            for (const auto& [port, to] : r.ports) changed += to.rate != s->before.at(id).ports.at(port).rate;
        CHECK(changed == 2 * s->facts.defects.size());
        for (const auto& d : s->facts.defects) {
            const auto [id, port] = s->end(d.objects.at(0));
            const auto was = s->before.at(id).ports.at(port).rate, is = s->after.at(id).ports.at(port).rate;
            CHECK((s == &narrow ? is.width == 1 && was.width == 4 : is.lane_gbps10 < was.lane_gbps10));
        }
    }
}

TEST_CASE("no two defects share an HCA, also when all are asked for", "[topo][generate]") {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        generate::options o;
        o.hosts = 128;
        o.seed = seed;
        o.shuffle = true;
        o.rates.fill(0.15);
        const auto g = made(o);
        std::map<std::string, guid> by_name;
        std::map<guid, int> hits;
        for (const auto& h : g.facts.hcas) {
            by_name[h.name] = h.id;
            hits[h.id] = 0;
        }
        std::map<defect_kind, int> count;
        for (const auto& d : g.facts.defects) {
            ++count[d.kind];
            std::set<guid> of_this;
            for (const auto& object : d.objects) {
                const auto name = object.substr(0, object.rfind(" port "));
                if (const auto at = by_name.find(name); at != by_name.end()) of_this.insert(at->second);
                if (object.starts_with("0x")) of_this.insert(number(object));
            }
            for (const auto id : of_this) ++hits[id];
        }
        CHECK(count.size() == generate::defect_kinds);
        for (const auto& [id, n] : hits) CHECK(n <= 1);
    }
}

TEST_CASE("a host keeps its name on the greater part of its HCAs", "[topo][generate]") {
    generate::options o;
    o.hosts = 128;
    o.rates[static_cast<std::size_t>(defect_kind::factory_name)] = 0.3;
    const auto g = made(o);
    std::map<std::uint32_t, int> named;
    for (const auto& h : g.facts.hcas) named[h.host] += h.name.starts_with(g.facts.hosts[h.host].name + ' ');
    for (const auto& [host, n] : named) CHECK(n > 4);
    for (const auto& h : g.facts.hosts) CHECK(h.named);
}

TEST_CASE("options out of range are refused by name", "[topo][generate]") {
    const auto complaint = [](auto change) {
        generate::options o;
        change(o);
        const auto g = generate::generate(o);
        return g ? std::string("taken") : g.error().text();
    };
    using o = generate::options;
    CHECK(complaint([](o& x) { x.hosts = 0; }) == "--nodes is 0, expected 1 to 60000");
    CHECK(complaint([](o& x) { x.rails = 17; }) == "--rails is 17, expected 1 to 16");
    CHECK(complaint([](o& x) { x.levels = 4; }) == "--levels is 4, expected 2 to 3");
    CHECK(complaint([](o& x) { x.oversubscription = 0.5; }) == "--oversubscription is 0.5, expected 1 to 16");
    CHECK(complaint([](o& x) { x.cores = 8; }).starts_with("--cores needs --levels 3"));
    CHECK(complaint([](o& x) {
              x.levels = 3, x.cores = 3;
          }).starts_with("--cores is 3, expected a multiple of"));
    CHECK(complaint([](o& x) { x.host_prefix = "a\"b"; }).starts_with("--host-prefix is \"a\"b\", expected"));
    CHECK(complaint([](o& x) { x.host_prefix = "a\nb"; }).starts_with("--host-prefix is"));
    for (const char* rate : {"", "4x", "HDR", "x", "3xHDR", "4xABC", "99999999999999999999xHDR"})
        CHECK(complaint([&](o& x) { x.rate = rate; }).starts_with("--rate is"));
    CHECK(complaint([](o& x) { x.hosts = 60000, x.rails = 16, x.planes = 8; }).find("more than 1000000") !=
          std::string::npos);
    CHECK(complaint([](o& x) {
              x.hosts = 60000, x.group_size = 4, x.links = 32;
          }).find("a switch would need") != std::string::npos);
    CHECK(complaint([](o& x) { x.rates[0] = 0.6; }) == "a defect rate is 0.6, expected 0 to 0.5");
}

TEST_CASE("defects that a shape cannot have are refused", "[topo][generate]") {
    generate::options o;
    o.rails = 1;
    for (const auto kind : {defect_kind::swapped_cables, defect_kind::foreign_leaf, defect_kind::missing_rail,
                            defect_kind::missing_leaf}) {
        CHECK_FALSE(generate::why_impossible(o, kind).empty());
        auto with = o;
        with.rates[static_cast<std::size_t>(kind)] = 0.1;
        const auto g = generate::generate(with);
        REQUIRE_FALSE(g);
        CHECK(g.error().what.find(std::string(generate::name_of(kind))) != std::string::npos);
    }
}

TEST_CASE("rates are read by kind", "[topo][generate]") {
    generate::defect_rates others{};
    others.fill(0.25);
    const auto rates = generate::parse_rates("swapped-cables=0.05,factory-name=0", others).value();
    CHECK(rates[static_cast<std::size_t>(defect_kind::swapped_cables)] == 0.05);
    CHECK(rates[static_cast<std::size_t>(defect_kind::factory_name)] == 0);
    CHECK(rates[static_cast<std::size_t>(defect_kind::no_record)] == 0.25);
    CHECK(generate::parse_rates("swaped-cables=0.1").error().hint == "did you mean swapped-cables?");
    for (const char* bad : {"swapped-cables", "swapped-cables=", "swapped-cables=-0.1", "swapped-cables=nan",
                            "swapped-cables=0.1x", "no-record=0.1,no-record=0.2", "=0.1"})
        CHECK_FALSE(generate::parse_rates(bad));
}

TEST_CASE("the truth is JSON", "[topo][generate]") {
    generate::options o;
    o.rates.fill(0.05);
    const auto g = made(o);
    const auto t = nlohmann::json::parse(generate::to_json(g.facts, o));
    CHECK(t["seed"] == 1);
    CHECK(t["defects"].size() == g.facts.defects.size());
    CHECK(t["defects"][0]["kind"] == "missing-leaf");
    CHECK(t["hosts"].size() == 64);
    CHECK(t["hcas"].size() == g.facts.hcas.size());
    CHECK(t["groups"][0]["leaves"].size() == 8);
}

}  // namespace test_generate
