// SPDX-License-Identifier: BSD-3-Clause
//
// An incident as JSON: what `banyan-fault incidents --json` prints and what the history keeps.
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fault/incident/incident.hpp"

namespace banyan::fault {
namespace {

using nlohmann::json;

// Reads fields of a known shape and remembers the first that has another.
class reader {
  public:
    explicit reader(const json& from) : from_(from) {}

    template <class T>
    void get(const char* key, T& into) {
        const auto it = from_.find(key);
        if (it == from_.end()) return;
        try {
            it->get_to(into);
        } catch (const json::exception&) {
            wrong_ = key;
        }
    }
    template <class Enum, std::size_t count>
    void get_enum(const char* key, Enum& into) {
        std::string text;
        get(key, text);
        for (std::size_t i = 0; i < count; ++i)
            if (text == name_of(static_cast<Enum>(i))) {
                into = static_cast<Enum>(i);
                return;
            }
        wrong_ = key;
    }
    const json& list(const char* key) const {
        static const json empty = json::array();
        const auto it = from_.find(key);
        return it != from_.end() && it->is_array() ? *it : empty;
    }
    const char* wrong() const { return wrong_; }

  private:
    const json& from_;
    const char* wrong_ = nullptr;
};

json ends_json(const std::vector<end_point>& ends) {
    auto out = json::array();
    for (const auto& e : ends)
        out.push_back({{"node", e.node},
                       {"name", e.name},
                       {"port", e.port},
                       {"guid", fmt::format("0x{:016x}", e.guid)}});
    return out;
}

object object_from(const json& j) {
    object o;
    reader in(j);
    in.get_enum<object_kind, 5>("kind", o.kind);
    in.get("node", o.node);
    in.get("gpu", o.gpu);
    in.get("bdf", o.bdf);
    in.get("uuid", o.uuid);
    in.get("hca", o.hca);
    for (const auto& item : in.list("ends")) {
        reader end(item);
        end_point e;
        std::string guid;
        end.get("node", e.node);
        end.get("name", e.name);
        end.get("port", e.port);
        end.get("guid", guid);
        e.guid = std::strtoull(guid.c_str(), nullptr, 16);
        o.ends.push_back(std::move(e));
    }
    return o;
}

}  // namespace

json to_json(const incident& i, bool with_evidence) {
    json object = {{"kind", name_of(i.object.kind)}, {"node", i.object.node}, {"text", i.object.text()}};
    if (i.object.kind == object_kind::gpu) {
        object["gpu"] = i.object.gpu;
        object["uuid"] = i.object.uuid;
    }
    if (!i.object.bdf.empty()) object["bdf"] = i.object.bdf;
    if (!i.object.hca.empty()) object["hca"] = i.object.hca;
    if (!i.object.ends.empty()) object["ends"] = ends_json(i.object.ends);
    auto actions = json::array(), evidence = json::array();
    for (const auto& a : i.actions)
        actions.push_back({{"what", a.what}, {"target", a.target}, {"at_ms", a.at_ms}, {"result", a.result}});
    if (with_evidence)
        for (const auto& e : i.evidence)
            evidence.push_back(
                {{"at_ms", e.at_ms}, {"source", e.source}, {"text", e.text}, {"repeats", e.repeats}});
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
                {"jobs", i.jobs},
                {"actions", std::move(actions)},
                {"evidence", std::move(evidence)},
                {"lines", i.lines},
                {"boot", i.boot_id},
                {"codes", std::move(codes)},
                {"precedence", i.root_precedence},
                {"closed_by", i.closed_by}};
    out["times"] = {{"line_ms", i.line_ms},     {"incident_ms", i.incident_ms},
                    {"sealed_ms", i.sealed_ms}, {"node_out_ms", i.node_out_ms},
                    {"last_ms", i.last_ms},     {"closed_ms", i.closed_ms}};
    if (i.verdict) out["verdict"] = *i.verdict;
    return out;
}

result<incident> incident_from(const json& j) {
    if (!j.is_object() || !j.contains("object") || !j["object"].is_object())
        return fail(errc::invalid_input, "an incident in the history is not readable");
    incident i;
    reader in(j);
    in.get("number", i.number);
    i.object = object_from(j["object"]);
    in.get("reason", i.reason);
    in.get("cause", i.cause);
    in.get_enum<severity, 4>("severity", i.severity);
    in.get_enum<incident_state, 3>("state", i.state);
    in.get("advice", i.advice);
    in.get("jobs", i.jobs);
    in.get("lines", i.lines);
    in.get("boot", i.boot_id);
    in.get("precedence", i.root_precedence);
    in.get("closed_by", i.closed_by);
    for (const auto& item : in.list("actions")) {
        action_record a;
        reader r(item);
        r.get("what", a.what), r.get("target", a.target), r.get("at_ms", a.at_ms), r.get("result", a.result);
        i.actions.push_back(std::move(a));
    }
    for (const auto& item : in.list("evidence")) {
        evidence_line e;
        reader r(item);
        r.get("at_ms", e.at_ms), r.get("source", e.source), r.get("text", e.text),
            r.get("repeats", e.repeats);
        i.evidence.push_back(std::move(e));
    }
    if (const auto codes = j.find("codes"); codes != j.end() && codes->is_object())
        for (const auto& [code, count] : codes->items())
            if (count.is_number_unsigned())
                i.codes[static_cast<std::uint32_t>(std::strtoul(code.c_str(), nullptr, 10))] =
                    count.get<std::uint64_t>();
    if (const auto v = j.find("verdict"); v != j.end() && v->is_number_unsigned())
        i.verdict = v->get<std::uint32_t>();
    if (const auto times = j.find("times"); times != j.end() && times->is_object()) {
        reader t(*times);
        t.get("line_ms", i.line_ms), t.get("incident_ms", i.incident_ms), t.get("sealed_ms", i.sealed_ms);
        t.get("node_out_ms", i.node_out_ms), t.get("last_ms", i.last_ms), t.get("closed_ms", i.closed_ms);
    }
    if (in.wrong())
        return fail(errc::invalid_input,
                    fmt::format("incident {} in the history: field \"{}\" is wrong", i.id(), in.wrong()));
    return i;
}

}  // namespace banyan::fault
