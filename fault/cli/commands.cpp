// SPDX-License-Identifier: BSD-3-Clause
#include "fault/cli/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/config.hpp"
#include "common/text.hpp"
#include "common/wire.hpp"
#include "fault/cli/moment.hpp"
#include "fault/cli/terminal.hpp"
#include "fault/config.hpp"
#include "fault/incident/incident.hpp"
#include "fault/net/protocol.hpp"
#include "fault/policy/rule.hpp"
#include "fault/sources/log_line.hpp"

namespace banyan::fault {

using nlohmann::json;

int client::failed(const error& e) const {
    return complain(e, e.code == errc::unavailable ? 1 : e.code == errc::invalid_input ? 2 : 3);
}

int client::makes_no_sense(const error& e) const {
    return failed({errc::unavailable, "the controller's answer makes no sense: " + e.what,
                   "is banyan-fault of the controller's release?"});
}

result<json> client::ask(const json& request, int timeout_s) {
    auto settings = load_config(config_path_, {});
    if (!settings) return fail(errc::invalid_input, settings.error().what, settings.error().hint);
    const auto until = clock::now() + std::chrono::seconds(timeout_s);
    auto fd = wire::connect_unix(settings->socket, until);
    if (!fd)
        return fail(errc::unavailable, fd.error().what,
                    fmt::format("banyan-fault asks the controller on its own host, which is {}; on this one: "
                                "systemctl status banyan-faultd-controller",
                                settings->controller));
    BANYAN_TRY(auto frame, wire::call(fd->get(), code(message::admin), request, until));
    return std::move(frame.meta);
}

int client::incidents(incident_filter wanted, const std::string& since, const std::string& until,
                      bool as_json, bool follow) {
    const auto now = clock::wall_ms();
    const auto from = since.empty() ? result<std::int64_t>(0) : moment_from(since, now);
    const auto to = until.empty() ? result<std::int64_t>(INT64_MAX) : moment_from(until, now);
    for (const auto* end : {&from, &to})
        if (!*end) return failed(end->error());
    wanted.since_ms = *from, wanted.until_ms = *to;
    if (const auto right = incident_sieve::from(wanted); !right)
        return failed({errc::invalid_input, right.error().what, right.error().hint});
    if (const auto known = reason_words();
        !wanted.reason.empty() && std::ranges::find(known, wanted.reason) == known.end())
        return failed({errc::invalid_input, fmt::format("\"{}\" is no reason", wanted.reason),
                       fmt::format("possible are {}", fmt::join(known, ", "))});
    return follow ? follow_incidents(wanted, as_json) : list_incidents(wanted, as_json);
}

int client::list_incidents(const incident_filter& wanted, bool as_json) {
    json request = {{"cmd", "incidents"}};
    wanted.write(request);
    const auto answer = ask(request);
    if (!answer) return failed(answer.error());
    const json_fields in(*answer);
    const auto list = in.list("incidents");
    if (!list) return makes_no_sense(list.error());
    if (const auto oldest = in.number("oldest").value_or(0); oldest > 1 && request.size() > 1)
        std::fprintf(stderr, "banyan-fault: of incidents before f%05llu the controller says nothing here\n",
                     static_cast<unsigned long long>(oldest));
    if (as_json) {
        put(as_text(*in.find("incidents"), 1));
        return 0;
    }
    if (list->empty()) {
        show("no incidents\n");
        return 0;
    }
    show(incident_header());
    for (const auto& i : *list) show(incident_row(i));
    return 0;
}

int client::follow_incidents(const incident_filter& wanted, bool as_json) {
    std::uint64_t revision = 0;
    std::map<std::string, std::string> shown;  // what was printed last of each
    if (!as_json) show(incident_header());
    for (;;) {
        json request = {{"cmd", "incidents"}};
        request["revision"] = revision;
        wanted.write(request);
        const auto answer = ask(request, 30);
        if (!answer) return failed(answer.error());
        const json_fields in(*answer);
        revision = in.number("revision").value_or(revision);
        const auto list = in.list("incidents");
        if (!list) return makes_no_sense(list.error());
        for (std::size_t at = 0; at < list->size(); ++at) {
            const auto& i = (*list)[at];
            auto text = as_json ? as_text((*in.find("incidents"))[at], -1) : incident_row(i);
            auto& last = shown[i.text("id").value_or("")];
            if (last == text) continue;
            as_json ? put(text) : show(text);
            last = std::move(text);
        }
    }
}

int client::explain(const std::string& id, bool as_json) {
    const auto number = number_of(id);
    if (!number)
        return failed(
            {errc::invalid_input, fmt::format("\"{}\" is not an incident, expected f00012", id), {}});
    json request = {{"cmd", "explain"}};
    request["number"] = *number;
    const auto answer = ask(request);
    if (!answer) return failed(answer.error());
    as_json ? put(as_text(*answer, 1)) : show(incident_story(json_fields(*answer)));
    return 0;
}

int client::status(bool as_json) {
    const auto answer = ask({{"cmd", "status"}});
    if (!answer) return failed(answer.error());
    as_json ? put(as_text(*answer, 1)) : show(status_text(json_fields(*answer)));
    return 0;
}

int client::agents(bool as_json) {
    const auto answer = ask({{"cmd", "agents"}});
    if (!answer) return failed(answer.error());
    const json_fields in(*answer);
    const auto list = in.list("agents");
    if (!list) return makes_no_sense(list.error());
    as_json ? put(as_text(*in.find("agents"), 1)) : show(agent_table(*list));
    return 0;
}

int client::nvlink_domains() {
    const auto answer = ask({{"cmd", "agents"}});
    if (!answer) return failed(answer.error());
    const auto list = json_fields(*answer).list("agents");
    if (!list) return makes_no_sense(list.error());
    show(nvlink_domain_lines(*list));
    return 0;
}

int client::close(const std::string& id) {
    const auto number = number_of(id);
    if (!number)
        return failed(
            {errc::invalid_input, fmt::format("\"{}\" is not an incident, expected f00012", id), {}});
    json request = {{"cmd", "close"}};
    request["number"] = *number;
    const auto answer = ask(request);
    if (!answer) return failed(answer.error());
    show(fmt::format("incident f{:05d} is closed\n", *number));
    return 0;
}

int client::rule_on(const char* ruling, const std::string& id) {
    const auto number = number_of(id);
    if (!number)
        return failed(
            {errc::invalid_input, fmt::format("\"{}\" is not an incident, expected f00012", id), {}});
    json request = {{"cmd", ruling}};
    request["number"] = *number;
    const auto answer = ask(request);
    if (!answer) return failed(answer.error());
    show(json_fields(*answer).text("text").value_or("done") + "\n");
    return 0;
}

int client::resume(const std::string& node) {
    json request = {{"cmd", "resume"}};
    request["node"] = node;
    const auto answer = ask(request);
    if (!answer) return failed(answer.error());
    show(json_fields(*answer).text("text").value_or("done") + "\n");
    return 0;
}

int client::reset_breaker() {
    const auto answer = ask({{"cmd", "reset-breaker"}});
    if (!answer) return failed(answer.error());
    put("the circuit breaker is closed\n");
    return 0;
}

int client::check_config() {
    const auto settings = load_config(config_path_, {});
    if (!settings) return failed({errc::invalid_input, settings.error().what, settings.error().hint});
    // One command is to answer for all daemons, so also for tables that the fault daemon does not read.
    const auto notes = banyan::check_config(config_path_);
    if (!notes) return failed({errc::invalid_input, notes.error().what, notes.error().hint});
    for (const auto& note : *notes) put(note + "\n");
    put("the configuration is right\n");
    return 0;
}

}  // namespace banyan::fault
