// SPDX-License-Identifier: BSD-3-Clause
//
// An incident as JSON: what `banyan-fault incidents --json` prints and what the history keeps.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "fault/incident/confidence.hpp"
#include "fault/incident/incident.hpp"
#include "fault/policy/rule.hpp"

namespace banyan::fault {
namespace {

using nlohmann::json;

/// Enumerators begin at 0 and have names.
template <class Enum, std::size_t count>
result<Enum> read_enum(const json_fields& in, const char* key) {
    std::array<std::string_view, count> names;
    for (std::size_t i = 0; i < count; ++i) names[i] = name_of(static_cast<Enum>(i));
    BANYAN_TRY(const auto at, in.one_of(key, names));
    return static_cast<Enum>(at);
}

/// Fields that may be missing, each with where it goes.
result<void> may_all(const json_fields&) { return {}; }
template <class T, class... More>
result<void> may_all(const json_fields& in, const char* key, T& into, More&&... more) {
    BANYAN_CHECK(in.may(key, into));
    return may_all(in, std::forward<More>(more)...);
}

/// A list of objects; one that is missing has none.
template <class T, class Read>
result<void> read_each(const json_fields& in, const char* key, std::vector<T>& into, Read read) {
    if (!in.has(key)) return {};
    BANYAN_TRY(const auto list, in.list(key));
    for (const auto& item : list) {
        T one;
        BANYAN_CHECK(read(item, one));
        into.push_back(std::move(one));
    }
    return {};
}

json ends_json(const std::vector<end_point>& ends) {
    auto out = json::array();
    for (const auto& e : ends)
        out.push_back({{"node", e.node},
                       {"name", e.name},
                       {"port", e.port},
                       {"guid", fmt::format("0x{:016x}", e.guid)}});
    return out;
}

result<void> read_end(const json_fields& in, end_point& e) {
    std::string guid;
    BANYAN_CHECK(may_all(in, "node", e.node, "name", e.name, "port", e.port, "guid", guid));
    e.guid = std::strtoull(guid.c_str(), nullptr, 16);
    return {};
}

result<object> object_from(const json_fields& in) {
    object o;
    BANYAN_TRY(o.kind, (read_enum<object_kind, 6>(in, "kind")));
    BANYAN_CHECK(may_all(in, "node", o.node, "gpu", o.gpu, "bdf", o.bdf, "uuid", o.uuid, "serial", o.serial,
                         "hca", o.hca, "device", o.device, "mbps", o.mbps));
    BANYAN_CHECK(read_each(in, "ends", o.ends, read_end));
    return o;
}

result<void> read_followed(const json_fields& in, followed_job& f) {
    std::string nodes;
    BANYAN_CHECK(may_all(in, "job", f.job, "restarts", f.restarts, "may_requeue", f.may_requeue, "since_ms",
                         f.since_ms, "script", f.script, "nodes", nodes));
    BANYAN_TRY(f.nodes, expand_hostlist(nodes));
    if (in.has("ended_step")) {
        BANYAN_TRY(f.ended_step, in.number("ended_step", UINT32_MAX));
    }
    return {};
}

result<void> read_lists(const json_fields& in, incident& i) {
    BANYAN_CHECK(read_each(in, "actions", i.actions, [](const json_fields& item, action_record& a) {
        return may_all(item, "what", a.what, "target", a.target, "at_ms", a.at_ms, "result", a.result);
    }));
    BANYAN_CHECK(read_each(in, "evidence", i.evidence, [](const json_fields& item, evidence_line& e) {
        return may_all(item, "at_ms", e.at_ms, "source", e.source, "text", e.text, "repeats", e.repeats,
                       "decides", e.decides);
    }));
    BANYAN_CHECK(read_each(in, "followed", i.followed, read_followed));
    return read_each(in, "ranks", i.ranks, [](const json_fields& item, job_ranks& r) {
        return may_all(item, "job", r.job, "restarts", r.restarts, "step", r.step, "of", r.of, "ranks",
                       r.ranks, "unknown", r.unknown);
    });
}

json ranks_json(const job_ranks& r) {
    json out = {{"job", r.job}, {"restarts", r.restarts}};
    if (!r.unknown.empty())
        out["unknown"] = r.unknown;
    else
        out.update({{"ranks", r.ranks}, {"of", r.of}, {"step", r.step}});
    return out;
}

result<void> read_firsts(const json_fields& in, incident& i) {
    return read_each(in, "firsts", i.firsts, [](const json_fields& item, job_hit& hit) {
        return may_all(item, "node", hit.node, "at_ms", hit.at_ms, "step", hit.step, "accuses", hit.accuses);
    });
}

result<void> read_place(const json_fields& in, incident& i) {
    if (in.has("place")) {
        BANYAN_TRY(i.place, neighbours_from(*in.find("place")));
    }
    BANYAN_CHECK(may_all(in, "nvlink_domain", i.nvlink_domain, "own_fault", i.own_fault, "begun", i.begun,
                         "kept_from_sweep", i.kept_from_sweep));
    if (in.has("nvlink_nodes")) {
        BANYAN_TRY(i.shown, in.texts("nvlink_nodes", incident::max_shown));
    }
    return read_each(in, "lost", i.lost, [](const json_fields& item, neighbours::card& c) {
        return may_all(item, "bdf", c.bdf, "name", c.name);
    });
}

result<void> read_codes(const json_fields& in, incident& i) {
    if (!in.has("codes")) return {};
    BANYAN_TRY(const auto codes, in.object("codes"));
    for (const auto& [code, count] : in.find("codes")->items()) {
        BANYAN_TRY(const auto number, parse_number(code, UINT32_MAX));
        BANYAN_TRY(i.codes[static_cast<std::uint32_t>(number)], codes.number(code.c_str()));
    }
    return {};
}

result<void> read_times(const json_fields& in, incident& i) {
    if (!in.has("times")) return {};
    BANYAN_TRY(const auto times, in.object("times"));
    BANYAN_CHECK(times.may("line_ms", i.line_ms));
    BANYAN_CHECK(times.may("incident_ms", i.incident_ms));
    BANYAN_CHECK(times.may("sealed_ms", i.sealed_ms));
    BANYAN_CHECK(times.may("node_out_ms", i.node_out_ms));
    BANYAN_CHECK(times.may("last_ms", i.last_ms));
    BANYAN_CHECK(times.may("held_ms", i.held_ms));
    BANYAN_CHECK(times.may("written_ms", i.written_ms));
    BANYAN_CHECK(times.may("avoid_ms", i.avoid_ms));
    return times.may("closed_ms", i.closed_ms);
}

// What an earlier release decided is not decided again.
result<void> read_decision(const json_fields& in, incident& i) {
    i.decided = UINT8_MAX;
    BANYAN_CHECK(in.may("rule", i.rule));
    if (in.has("asked")) {
        BANYAN_TRY(const auto step, in.one_of("asked", action_words()));
        i.decided = static_cast<std::uint8_t>(step);
    }
    BANYAN_CHECK(in.may("symptom", i.symptom));
    if (in.has("fallen")) {
        BANYAN_TRY(i.fallen, (read_enum<link_end, 4>(in, "fallen")));
    }
    BANYAN_CHECK(in.may("swept", i.swept));
    if (in.has("xid")) {
        BANYAN_TRY(i.xid, in.number("xid", UINT32_MAX));
    }
    if (in.has("sxid")) {
        BANYAN_TRY(i.sxid, in.number("sxid", UINT32_MAX));
    }
    if (in.has("seen")) {
        BANYAN_TRY(const auto seen, in.numbers<std::uint64_t>("seen", incident::max_seen));
        for (const auto at : seen) i.seen.push_back(static_cast<std::int64_t>(at & INT64_MAX));
    }
    return {};
}

result<incident> read_incident(const json_fields& in) {
    incident i;
    BANYAN_CHECK(in.may("number", i.number));
    BANYAN_TRY(const auto object, in.object("object"));
    BANYAN_TRY(i.object, object_from(object));
    BANYAN_CHECK(in.may("reason", i.reason));
    BANYAN_CHECK(in.may("cause", i.cause));
    BANYAN_TRY(i.severity, (read_enum<severity, 4>(in, "severity")));
    BANYAN_TRY(i.state, (read_enum<incident_state, 4>(in, "state")));
    BANYAN_CHECK(in.may("advice", i.advice));
    BANYAN_CHECK(read_decision(in, i));
    if (in.has("jobs")) {
        BANYAN_TRY(i.jobs, in.numbers<std::uint64_t>("jobs", SIZE_MAX));
    }
    BANYAN_CHECK(in.may("accused", i.accused));
    BANYAN_CHECK(in.may("lines", i.lines));
    BANYAN_CHECK(in.may("flaps", i.flaps));
    BANYAN_CHECK(in.may("back", i.back));
    if (in.has("ports_down")) {
        BANYAN_TRY(i.ports, in.texts("ports_down", incident::max_ports));
    }
    BANYAN_CHECK(in.may("boot", i.boot_id));
    BANYAN_CHECK(in.may("precedence", i.root_precedence));
    BANYAN_CHECK(in.may("closed_by", i.closed_by));
    BANYAN_CHECK(in.may("approved_by", i.approved_by));
    BANYAN_CHECK(in.may("cancelled_by", i.cancelled_by));
    BANYAN_CHECK(read_lists(in, i));
    BANYAN_CHECK(read_codes(in, i));
    BANYAN_CHECK(read_place(in, i));
    BANYAN_CHECK(read_firsts(in, i));
    BANYAN_CHECK(read_times(in, i));
    if (in.has("verdict")) {
        BANYAN_TRY(i.verdict, in.number("verdict", UINT32_MAX));
    }
    BANYAN_CHECK(in.may("verdict_on_culprit", i.verdict_on_culprit));
    return i;
}

}  // namespace

json to_json(const incident& i, bool with_evidence) {
    json object = {{"kind", name_of(i.object.kind)}, {"node", i.object.node}, {"text", i.object.text()}};
    if (i.object.kind == object_kind::gpu) {
        object["gpu"] = i.object.gpu;
        object["uuid"] = i.object.uuid;
        if (!i.object.serial.empty()) object["serial"] = i.object.serial;
    }
    if (!i.object.bdf.empty()) object["bdf"] = i.object.bdf;
    if (!i.object.hca.empty()) object["hca"] = i.object.hca;
    if (!i.object.device.empty()) object["device"] = i.object.device;
    if (i.object.mbps != 0) object["mbps"] = i.object.mbps;
    if (!i.object.ends.empty()) object["ends"] = ends_json(i.object.ends);
    auto actions = json::array(), evidence = json::array();
    for (const auto& a : i.actions)
        actions.push_back({{"what", a.what}, {"target", a.target}, {"at_ms", a.at_ms}, {"result", a.result}});
    if (with_evidence)
        for (const auto& e : i.evidence)
            evidence.push_back({{"at_ms", e.at_ms},
                                {"source", e.source},
                                {"text", e.text},
                                {"repeats", e.repeats},
                                {"decides", e.decides}});
    json codes = json::object();
    for (const auto& [code, count] : i.codes) codes[std::to_string(code)] = count;
    json out = {{"id", i.id()},
                {"number", i.number},
                {"object", std::move(object)},
                {"reason", i.reason},
                {"cause", i.cause},
                {"severity", name_of(i.severity)},
                {"state", name_of(i.state)},
                {"advice", i.advice},
                {"rule", i.rule},
                {"jobs", i.jobs},
                {"actions", std::move(actions)},
                {"evidence", std::move(evidence)},
                {"lines", i.lines},
                {"flaps", i.flaps},
                {"back", i.back},
                {"boot", i.boot_id},
                {"codes", std::move(codes)},
                {"precedence", i.root_precedence},
                {"closed_by", i.closed_by},
                {"approved_by", i.approved_by},
                {"cancelled_by", i.cancelled_by}};
    out["times"] = {
        {"line_ms", i.line_ms},         {"incident_ms", i.incident_ms}, {"sealed_ms", i.sealed_ms},
        {"node_out_ms", i.node_out_ms}, {"last_ms", i.last_ms},         {"closed_ms", i.closed_ms},
        {"held_ms", i.held_ms},         {"avoid_ms", i.avoid_ms},       {"written_ms", i.written_ms}};
    for (const auto& f : i.followed) {
        out["followed"].push_back({{"job", f.job},
                                   {"restarts", f.restarts},
                                   {"may_requeue", f.may_requeue},
                                   {"since_ms", f.since_ms},
                                   {"script", f.script},
                                   {"nodes", compress_hostlist(f.nodes)}});
        if (f.ended_step) out["followed"].back()["ended_step"] = *f.ended_step;
    }
    for (const auto& hit : i.firsts)
        out["firsts"].push_back(
            {{"node", hit.node}, {"at_ms", hit.at_ms}, {"step", hit.step}, {"accuses", hit.accuses}});
    if (!i.ports.empty()) out["ports_down"] = i.ports;
    if (i.place) out["place"] = to_json(*i.place);
    if (!i.nvlink_domain.empty()) {
        out["nvlink_domain"] = i.nvlink_domain;
        if (!i.shown.empty()) out["nvlink_nodes"] = i.shown;
        if (i.own_fault) out["own_fault"] = true;
        if (i.begun) out["begun"] = true;
        if (i.kept_from_sweep) out["kept_from_sweep"] = true;
    }
    for (const auto& c : i.lost) out["lost"].push_back({{"bdf", c.bdf}, {"name", c.name}});
    for (const auto& r : i.ranks) out["ranks"].push_back(ranks_json(r));
    if (i.decided < action_words().size()) out["asked"] = action_words()[i.decided];
    if (i.accused != 0) out["accused"] = i.accused;
    if (!i.swept.empty()) out["swept"] = i.swept;
    if (i.verdict) out["verdict"] = *i.verdict;
    if (i.verdict_on_culprit) out["verdict_on_culprit"] = true;
    // For readers: it is judged anew from the rest.
    const auto sure = sureness_of(i);
    out["confidence"] = {{"level", name_of(sure.how)}, {"why", sure.why}};
    if (i.xid) out["xid"] = *i.xid;
    if (i.sxid) out["sxid"] = *i.sxid;
    if (!i.symptom.empty()) out["symptom"] = i.symptom;
    if (i.fallen != link_end::none) out["fallen"] = name_of(i.fallen);
    for (const auto at : i.seen)
        out["seen"].push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(at, 0)));
    return out;
}

json users_json(const incident& i) {
    constexpr const char* hidden = "(for root)";
    auto out = to_json(i);
    for (auto& line : out["evidence"]) line["text"] = hidden;
    for (auto& action : out["actions"])
        if (action["what"] == "agent_seal" || action["what"] == "seal") action["result"] = hidden;
    return out;
}

result<incident> incident_from(const json& j) {
    const json_fields in(j);
    auto read = read_incident(in);
    if (!read)
        return fail(errc::invalid_input, fmt::format("incident f{:05d} in the history: {}",
                                                     in.number("number").value_or(0), read.error().what));
    return read;
}

}  // namespace banyan::fault
