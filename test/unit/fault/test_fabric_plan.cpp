// SPDX-License-Identifier: BSD-3-Clause
//
// Looks at the fabric, one after the other: one physical fault is one incident.
#include <fstream>
#include <set>

#include <catch2/catch.hpp>

#include "fault/fabric/fabric_plan.hpp"
#include "test/built.hpp"

namespace test_fabric_plan {

using namespace banyan::fault;

namespace {

using kind = fabric_step::kind;

fabric_fault hca_fault(const std::string& host, int rail) {
    fabric_fault f;
    f.object.kind = object_kind::hca;
    f.object.node = host;
    f.object.hca = "mlx5_" + std::to_string(rail);
    const auto guid = std::hash<std::string>{}(host + f.object.hca);
    f.object.ends = {{host, f.object.hca, 1, guid},
                     {"leaf", "leaf", static_cast<std::uint32_t>(rail), 0x1eaf}};
    f.reason = "host-link";
    f.cause = "link of " + host + " " + f.object.hca + " down";
    f.how_bad = severity::error;
    return f;
}

fabric_fault whole(object_kind what, const std::string& name, std::vector<fabric_fault> parts) {
    fabric_fault f;
    f.object.kind = what;
    f.object.node = name;
    if (what == object_kind::sw) f.object.ends = {{name, name, 0, 0x1eaf}};
    for (const auto& p : parts) {
        if (what == object_kind::node) f.object.ends.push_back(p.object.ends.front());
        f.covers.push_back(p.key());
    }
    f.reason = what == object_kind::sw ? "fabric-switch" : "host-lost";
    f.cause = name + " is gone";
    return f;
}

std::vector<fabric_fault> hcas(const std::string& host, int from, int to) {
    std::vector<fabric_fault> out;
    for (int rail = from; rail < to; ++rail) out.push_back(hca_fault(host, rail));
    return out;
}

/// Incidents, and what becomes of them.
class book {
  public:
    std::map<std::uint64_t, incident> all;
    std::int64_t now_ms = 1'000'000;
    std::set<std::string> unseen{};  // keys of what is not there, and not missed
    bool rate_known = true;

    std::vector<fabric_step> look(const std::vector<fabric_fault>& missing,
                                  const std::vector<fabric_fault>& passing = {}) {
        now_ms += 1'000;
        // All that is not missing is there, unless the test says that it is not.
        std::set<std::string> gone = unseen;
        std::set<std::uint64_t> cards;
        for (const auto& f : missing) {
            gone.insert(f.key());
            gone.insert(f.covers.begin(), f.covers.end());
            for (const auto& e : f.object.ends) cards.insert(e.guid);
        }
        const auto seen = [&](const object& o) -> std::optional<bool> {
            if (o.kind == object_kind::node)
                return std::ranges::none_of(o.ends, [&](const auto& e) { return cards.contains(e.guid); }) &&
                       !gone.contains(key_of(o));
            return rate_known ? std::optional(!gone.contains(key_of(o))) : std::nullopt;
        };
        auto steps = plan_for(all, missing, passing, seen, now_ms);
        for (const auto& s : steps) {
            const auto number = s.what == kind::open ? all.size() + 1 : s.number;
            auto& i = all[number];
            i.number = number;
            i.boot_id = fabric_boot;
            if (s.what == kind::open) i.line_ms = now_ms;
            if (s.what == kind::close) {
                if (!s.fault.cause.empty()) i.cause = s.fault.cause;
                i.closed_ms = now_ms;
                i.closed_by = s.words;
                continue;
            }
            if (s.what == kind::part) {
                i.cause = s.words;
                continue;
            }
            i.object = s.fault.object;
            i.reason = s.fault.reason;
            i.cause = s.fault.cause;
            i.severity = s.fault.how_bad;
            i.closed_ms = s.back ? now_ms : 0;
            if (s.what == kind::again) ++i.flaps;
        }
        return steps;
    }
    std::size_t open() const {
        return static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [](const auto& p) { return p.second.closed_ms == 0; }));
    }
};

}  // namespace

TEST_CASE("HCAs that come back one by one open nothing", "[fault]") {
    book b;
    const auto lost = whole(object_kind::node, "n05", hcas("n05", 0, 8));
    (void)b.look({lost});
    REQUIRE(b.all.size() == 1);
    for (int back = 1; back < 8; ++back) {
        const auto steps = b.look(hcas("n05", back, 8));
        REQUIRE(steps.size() == 1);
        CHECK(steps[0].what == kind::part);
        CHECK(b.all.size() == 1);
        CHECK(b.open() == 1);
    }
    CHECK(b.all[1].cause == "1 of 8 HCAs of n05 are still gone: mlx5_7");
    CHECK(b.look(hcas("n05", 7, 8)).empty());  // nothing new is nothing to say
    // Another host's is not this one's.
    auto both = hcas("n05", 7, 8);
    both.push_back(hca_fault("n06", 1));
    (void)b.look(both);
    CHECK(b.all.size() == 2);
    (void)b.look({});
    CHECK(b.open() == 0);
    CHECK(b.all[1].closed_by == "the fabric: it is back");
}

TEST_CASE("a host that Slurm restarted and that comes back in part is a fault", "[fault]") {
    book b;
    auto lost = whole(object_kind::node, "n05", hcas("n05", 0, 8));
    lost.how_bad = severity::notice;
    (void)b.look({lost});
    REQUIRE(is_planned(b.all[1]));
    auto left = hcas("n05", 7, 8);
    left[0].how_bad = severity::notice;  // it is on its way
    (void)b.look(left);
    CHECK(b.all.size() == 1);
    left[0].how_bad = severity::error;
    for (int n = 0; n < 2; ++n) {
        (void)b.look(left);
        REQUIRE(b.all.size() == 2);
        CHECK(b.all[2].object.hca == "mlx5_7");
        CHECK(b.all[2].severity == severity::error);
        CHECK(b.all[2].flaps == 0);
    }
    (void)b.look({});
    CHECK(b.open() == 0);
}

TEST_CASE("HCAs that go one by one become the host that is gone", "[fault]") {
    book b;
    (void)b.look(hcas("n05", 0, 1));
    (void)b.look(hcas("n05", 0, 2));
    const auto steps = b.look({whole(object_kind::node, "n05", hcas("n05", 0, 8))});
    REQUIRE(steps.size() == 2);
    CHECK(steps[0].what == kind::grow);
    CHECK(steps[0].number == 1);
    CHECK(steps[1].what == kind::close);
    CHECK(b.open() == 1);
    CHECK(b.all[1].object.kind == object_kind::node);
    CHECK(b.all[2].closed_by == "the fabric: part of a larger fault");
    // One that was gone long before is a fault of its own.
    book old;
    (void)old.look(hcas("n05", 0, 1));
    old.now_ms += grows_within_ms;
    (void)old.look({whole(object_kind::node, "n05", hcas("n05", 0, 8))});
    CHECK(old.all.size() == 2);
    CHECK(old.open() == 1);
}

TEST_CASE("a switch's links are its own, also while it comes back", "[fault]") {
    book b;
    std::vector<fabric_fault> links;
    for (int host = 0; host < 16; ++host) links.push_back(hca_fault("n" + std::to_string(host), 3));
    (void)b.look({whole(object_kind::sw, "leaf", links)});
    (void)b.look({links.begin() + 10, links.end()});
    CHECK(b.all.size() == 1);
    CHECK(b.all[1].cause.starts_with("switch leaf is back without 6 of its links: n10 mlx5_3"));
    // Gone again before it was whole.
    (void)b.look({whole(object_kind::sw, "leaf", links)});
    CHECK(b.all.size() == 1);
    CHECK(b.all[1].flaps == 1);
    CHECK(b.all[1].cause == "leaf is gone");
    (void)b.look({});
    CHECK(b.open() == 0);
}

TEST_CASE("five flaps are one incident with a count", "[fault]") {
    book b;
    for (int n = 0; n < 5; ++n) {
        (void)b.look(hcas("n05", 0, 1));
        CHECK(b.open() == 1);
        (void)b.look({});
        CHECK(b.open() == 0);
    }
    CHECK(b.all.size() == 1);
    CHECK(b.all[1].flaps == 4);
    // Weeks later it is another fault.
    b.now_ms += flaps_within_ms + 1;
    (void)b.look(hcas("n05", 0, 1));
    CHECK(b.all.size() == 2);
}

TEST_CASE("a port that was told to be down and is up counts as a flap", "[fault]") {
    book b;
    for (int n = 0; n < 5; ++n) (void)b.look({}, hcas("n05", 0, 1));
    REQUIRE(b.all.size() == 1);
    CHECK(b.open() == 0);
    CHECK(b.all[1].flaps == 4);
    (void)b.look(hcas("n05", 0, 1), hcas("n05", 0, 1));  // now it stays down
    CHECK(b.all.size() == 1);
    CHECK(b.open() == 1);
    // What a larger fault covers needs no words of its own.
    (void)b.look({whole(object_kind::node, "n05", hcas("n05", 0, 8))}, hcas("n05", 0, 8));
    CHECK(b.open() == 1);
}

TEST_CASE("what is not missed, and not there, stays open until it is seen", "[fault]") {
    const auto link = hca_fault("n05", 0), slow = hca_fault("n06", 1);
    const auto host = whole(object_kind::node, "n07", hcas("n07", 0, 8));
    const auto sw = whole(object_kind::sw, "leaf", {hca_fault("n08", 3)});
    for (const auto& f : {link, slow, host, sw}) {
        book b;
        (void)b.look({f});
        b.unseen = {f.key()};
        const auto steps = b.look({});
        REQUIRE(steps.size() == 1);
        CHECK(steps[0].what == kind::part);
        CHECK(b.open() == 1);
        CHECK(b.all[1].cause == f.cause + std::string(not_accepted));
        CHECK(b.look({}).empty());  // said once
        b.unseen.clear();
        (void)b.look({});
        CHECK(b.open() == 0);
        CHECK(b.all[1].closed_by == fabric_is_back);
        CHECK(b.all[1].cause.find(not_accepted) == std::string::npos);
    }
    // A link that is up, at a rate that nobody can tell: whether it is slow is not known.
    book b;
    auto of_rate = slow;
    of_rate.reason = link_slow;
    (void)b.look({link, of_rate});
    b.rate_known = false;
    (void)b.look({});
    CHECK(b.all[1].closed_by == fabric_is_back);
    CHECK(b.all[2].closed_ms == 0);
    CHECK(b.all[2].cause == of_rate.cause);
}

TEST_CASE("a thousand faults at once are planned in no time", "[fault]") {
    book b;
    std::vector<fabric_fault> many;
    for (int n = 0; n < 1000; ++n) many.push_back(hca_fault("n" + std::to_string(n), 0));
    CHECK(b.look(many).size() == 1000);
    CHECK(b.look(many).empty());
    CHECK(b.look({}).size() == 1000);
    CHECK(b.look(many).size() == 1000);
    CHECK(b.all.size() == 1000);
}

TEST_CASE("what is new is accepted while a link is slow, and the link stays slow", "[fault]") {
    const auto dump = [](bool slow, bool all) {
        std::ifstream in(banyan::testing::fixture("ib/ibnetdiscover.txt"));
        std::string out, section;
        for (std::string line; std::getline(in, line);) {
            if (!all && line.find("gpu0016") != std::string::npos) continue;
            if (line.starts_with("Switch")) section = line;
            const bool here = line.starts_with("[33]") && section.find("leaf-08") != std::string::npos;
            if (slow && (here || line.starts_with("[29]\t\"S-fc6a1c0300000200\"")))
                if (const auto at = line.find(" 4x"); at != std::string::npos) line.replace(at, 3, " 1x");
            out += line + "\n";
        }
        return out;
    };
    fabric_memory watched;
    const auto reasons = [&](bool slow, bool all) {
        std::multiset<std::string> out;
        const auto found = watched.compare(dump(slow, all));
        REQUIRE(found);
        for (const auto& f : *found) out.insert(f.reason);
        return out;
    };
    using told = std::multiset<std::string>;
    CHECK(reasons(false, false).empty());
    CHECK(reasons(true, false) == told{"link-slow"});
    CHECK(reasons(true, true) == told{"link-slow"});
    CHECK(reasons(true, false) == told{"link-slow", "host-lost"});  // it was there, and is missed
    CHECK(reasons(true, true) == told{"link-slow"});
    CHECK(reasons(false, true).empty());
    CHECK(reasons(true, true) == told{"link-slow"});
}

}  // namespace test_fabric_plan
