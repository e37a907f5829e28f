// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/samples.hpp"

#include <array>
#include <set>

#include "fault/catalog/symptom.hpp"
#include "fault/catalog/xid.hpp"
#include "fault/incident/engine.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t most_named = 2000;

incident made_of(kernel_fault f) {
    event e;
    e.node = "node";
    e.line_ms = 1;
    e.fault = std::move(f);
    engine fresh;
    return *fresh.find(fresh.absorb(e, 1).number);
}

kernel_fault numbered(fault_kind kind, std::uint32_t code) {
    kernel_fault f;
    f.kind = kind;
    f.code = code;
    f.bdf = "0000:01:00";
    return f;
}

void add_xids(std::vector<policy_sample>& out) {
    for (const auto& row : catalog::xids())
        if (row.bucket != catalog::bucket::verdict)
            out.push_back({"Xid", std::to_string(row.code), made_of(numbered(fault_kind::xid, row.code))});
    out.push_back({"Xid", "unknown", made_of(numbered(fault_kind::xid, UINT32_MAX))});
    auto echo = numbered(fault_kind::xid, 45);
    echo.caused_by = 13;
    out.push_back({"Xid", "caused by another", made_of(echo)});
    constexpr std::array verdicts{"none",      "GPU reset",       "node reboot",
                                  "drain P2P", "drain and reset", "unknown"};
    for (std::uint32_t code = 0; code < verdicts.size(); ++code) {
        auto f = numbered(fault_kind::xid, 154);
        f.recovery = code;
        out.push_back({"verdict", verdicts.at(code), made_of(f)});
    }
}

void add_sxids(std::vector<policy_sample>& out) {
    constexpr std::array words{"without severity", "correctable", "non-fatal", "fatal"};
    for (std::size_t n = 0; n < words.size(); ++n) {
        auto f = numbered(fault_kind::sxid, 12028);
        f.severity = static_cast<link_severity>(n);
        out.push_back({"SXid", words.at(n), made_of(f)});
    }
}

void add_symptoms(std::vector<policy_sample>& out) {
    for (const auto& row : catalog::symptoms()) {
        auto f = numbered(fault_kind::symptom, static_cast<std::uint32_t>(row.code));
        f.device = "device";
        out.push_back({"symptom", std::string(row.name), made_of(f)});
        f.bdf.clear();
        out.push_back({"symptom", std::string(row.name), made_of(f)});
    }
    auto f = numbered(fault_kind::symptom, UINT32_MAX);
    f.device = "device";
    out.push_back({"symptom", "unknown", made_of(f)});
}

void add_others(std::vector<policy_sample>& out) {
    struct row {
        const char* reason;
        object_kind kind;
        enum severity severity;
    };
    for (const auto& [reason, kind, how_bad] : {row{"fabric-link", object_kind::link, severity::warning},
                                                {"fabric-switch", object_kind::sw, severity::error},
                                                {"fabric-errors", object_kind::link, severity::warning},
                                                {"link-slow", object_kind::link, severity::error},
                                                {"subnet-manager", object_kind::manager, severity::error},
                                                {"host-link", object_kind::hca, severity::error},
                                                {"host-lost", object_kind::node, severity::error},
                                                {"nvlink-domain", object_kind::sw, severity::error},
                                                {"node-silent", object_kind::node, severity::fatal},
                                                {"node-stuck", object_kind::node, severity::fatal}}) {
        incident i;
        i.object.kind = kind;
        i.reason = reason;
        i.severity = how_bad;
        i.line_ms = i.last_ms = 1;
        if (kind == object_kind::link || kind == object_kind::hca)
            i.object.ends = {{"node", "node", 1, 1}, {"switch", "switch", 1, 2}};
        const bool whole_node = i.reason == silent_reason || i.reason == stuck_reason;
        i.root_precedence =
            static_cast<std::uint8_t>(whole_node ? precedence::node_out : precedence::sympathetic);
        if (is_an_nvlink_domain(i)) i.root_precedence = static_cast<std::uint8_t>(precedence::alert);
        out.push_back({"reason", reason, std::move(i)});
    }
}

/// The ends of the ranges that rules name: what is between is treated alike.
std::set<std::uint32_t> named(const policy& p, std::vector<number_range> criteria::*which) {
    std::set<std::uint32_t> out;
    for (const auto& r : p.rules())
        for (const auto& range : r.when.*which)
            if (out.size() < most_named) out.insert({range.first, range.last});
    return out;
}

}  // namespace

std::vector<policy_sample> samples_for(const policy& p) {
    std::vector<policy_sample> out;
    add_xids(out);
    for (const auto code : named(p, &criteria::xids))
        if (!catalog::find_xid(code))
            out.push_back({"Xid", std::to_string(code), made_of(numbered(fault_kind::xid, code))});
    add_sxids(out);
    for (const auto code : named(p, &criteria::sxids))
        out.push_back({"SXid", std::to_string(code), made_of(numbered(fault_kind::sxid, code))});
    add_symptoms(out);
    add_others(out);
    return out;
}

}  // namespace banyan::fault
