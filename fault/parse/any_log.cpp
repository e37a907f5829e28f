// SPDX-License-Identifier: BSD-3-Clause
#include "fault/parse/any_log.hpp"

#include <algorithm>
#include <array>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "common/text.hpp"

namespace banyan::fault {
namespace {

constexpr std::array<std::string_view, 8> names{"guess",  "kmsg", "syslog",         "json",
                                                "opensm", "ufm",  "fabric-manager", "nccl"};

// "1700000000123456" (microseconds) as 2023-11-14T22:13:20.123456Z
std::string utc(std::uint64_t usec) {
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}Z", fmt::gmtime(static_cast<std::time_t>(usec / 1'000'000)),
                       usec % 1'000'000);
}

}  // namespace

result<log_format> log_format_from(std::string_view name) {
    const auto it = std::ranges::find(names, name);
    if (it != names.end()) return static_cast<log_format>(it - names.begin());
    return fail(errc::invalid_input, fmt::format("\"{}\" is no format", name),
                "expected guess, kmsg, syslog, json, opensm, ufm, fabric-manager or nccl");
}

std::string_view name_of(log_format f) { return names.at(static_cast<std::size_t>(f)); }

any_log::host& any_log::host_of(std::string_view name) {
    if (const auto it = hosts_.find(name); it != hosts_.end()) return it->second;
    if (hosts_.size() >= max_hosts) hosts_.clear();  // what they waited for is lost: names come from the file
    const auto trust = format_ == log_format::syslog ? kmsg_trust::syslog : kmsg_trust::kernel;
    auto& fresh = hosts_.emplace(std::string(name), host{kernel_log(trust, false), {}}).first->second;
    fresh.parser.set_branch(branch_);
    return fresh;
}

// Each format's head differs from all others'.
void any_log::guess(std::string_view raw) {
    const auto settle = [&](log_format f) { format_ = f; };
    bool form = false;
    if (raw.starts_with('{') && raw.find("\":") != std::string_view::npos) return settle(log_format::json);
    if (opensm_parser::has_head(raw)) return settle(log_format::opensm);
    if (ufm_reading(raw, form); form) return settle(log_format::ufm);
    if (fabric_manager_reading(raw, form); form) return settle(log_format::fabric_manager);
    if (nccl_reading(raw, form); form) return settle(log_format::nccl);
    if (kernel_log::has_form(raw)) return settle(log_format::kmsg);
}

void any_log::line(std::string_view raw, const sink& out) {
    ++seen_.lines;
    if (raw.ends_with('\r')) raw.remove_suffix(1);
    if (format_ == log_format::guess) guess(raw);
    const auto count = [&](const reading& r) {
        ++seen_.events;
        out(r);
    };
    if (!read(raw, count)) ++seen_.foreign;
}

bool any_log::read(std::string_view raw, const sink& out) {
    bool form = false;
    const auto give_one = [&](std::optional<reading> found) {
        if (found) out(*found);
        return form;
    };
    switch (format_) {
        case log_format::guess:
            return raw.empty();
        case log_format::kmsg:
        case log_format::syslog:
            return kernel(raw, out);
        case log_format::json:
            return json(raw, out);
        case log_format::opensm: {
            form = raw.starts_with('\t') || raw.empty() || opensm_parser::has_head(raw);
            const auto found = opensm_.line(raw);
            auto shown = found ? reading_of(*found) : std::nullopt;
            // "Nov 21 02:25:41 541466": no year, no zone
            if (shown && shown->text.size() > 22) shown->time = shown->text.substr(0, shown->text.find(" ["));
            return give_one(std::move(shown));
        }
        case log_format::ufm:
            return give_one(ufm_reading(raw, form));
        case log_format::fabric_manager:
            return give_one(fabric_manager_reading(raw, form));
        case log_format::nccl:
            return give_one(nccl_reading(raw, form));
    }
    return false;
}

void any_log::give(host& from, std::string_view text, const std::string& node, const std::string& time,
                   const sink& out) {
    const auto found = from.parser.line(text);
    if (!found.fault) return;
    auto shown = reading_of(*found.fault, text.substr(0, 480));
    shown.node = node;
    shown.time = time;
    out(shown);
}

bool any_log::kernel(std::string_view raw, const sink& out) {
    const auto place = kernel_log::origin_of(raw);
    auto& from = host_of(place.host);
    const std::string node(place.host), time(place.time);
    const auto told = from.log.read(raw, [&](std::string_view text) { give(from, text, node, time, out); });
    if (told.refused) ++seen_.refused;
    return place.formed;
}

// journald's fields that begin with '_' are its own: no user sets them. Fluent Bit's reader of /dev/kmsg
// gives sequence, sec, usec and msg. Whatever else there is was written by a program.
bool any_log::json(std::string_view raw, const sink& out) {
    const auto parsed = nlohmann::json::parse(raw, nullptr, false);
    if (!parsed.is_object()) return false;
    const json_fields in(parsed);
    std::string text, node, time;
    constexpr std::size_t most = 64 * 1024;
    if (const auto via = in.text("_TRANSPORT")) {
        // Root's own writes to the device come from the kernel, too, with another facility.
        if (*via != "kernel" || in.text("SYSLOG_FACILITY").value_or("0") != "0") return true;
        text = in.text("MESSAGE", most).value_or("");
        node = in.text("_HOSTNAME", 255).value_or("");
        const auto stamp = in.text("__REALTIME_TIMESTAMP").value_or("");
        if (const auto usec = parse_number(stamp, 1ull << 54)) time = utc(*usec);
    } else if (in.number("sequence") && in.number("sec") && in.number("usec") && in.has("msg")) {
        text = in.text("msg", most).value_or("");
        for (const auto* key : {"hostname", "host", "node"})
            if (node.empty()) node = in.text(key, 255).value_or("");
        time = fmt::format("{}.{:06}", *in.number("sec"), *in.number("usec"));
    } else {
        return true;
    }
    auto& from = host_of(node);
    kernel_log::lines_of_record(text, [&](std::string_view one) { give(from, one, node, time, out); });
    return true;
}

}  // namespace banyan::fault
