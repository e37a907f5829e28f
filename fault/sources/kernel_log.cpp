// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/kernel_log.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/format.h>

#include "fault/sources/kernel_fault.hpp"
#include "fault/sources/kmsg_record.hpp"
#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;
using scan::drop_clock;
using scan::drop_digits;

constexpr std::array<std::string_view, 3> trust_names{"kernel", "syslog", "injected"};

void drop_blanks(std::string_view& text) {
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
}

bool drop_word(std::string_view& text, std::span<const std::string_view> words) {
    return std::ranges::any_of(words, [&](auto word) { return drop(text, word); });
}

constexpr std::array<std::string_view, 12> months{"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> days{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};

// "Nov 21 02:00:01"
bool drop_day_and_clock(std::string_view& text) {
    if (!drop_word(text, months) || !drop(text, " ")) return false;
    drop_blanks(text);
    return drop_digits(text, 1, 2) && drop(text, " ") && drop_clock(text);
}

// "2026-11-21T02:00:01[.123456|,123456][+01:00|Z]"
bool drop_iso(std::string_view& text) {
    if (!drop_digits(text, 4, 4) || !drop(text, "-") || !drop_digits(text, 2, 2) || !drop(text, "-") ||
        !drop_digits(text, 2, 2) || !drop(text, "T") || !drop_clock(text))
        return false;
    if ((drop(text, ".") || drop(text, ",")) && !drop_digits(text, 1, 9)) return false;
    if (drop(text, "Z")) return true;
    if (drop(text, "+") || drop(text, "-"))
        return drop_digits(text, 2, 4) && (!drop(text, ":") || drop_digits(text, 2, 2));
    return true;
}

// "[  123.456789] ", or "[Fri Nov 21 02:00:01 2026] ", each with "[ T123] " after it; the stamp is left in
// `stamp` when it is the kernel's own, exact to the microsecond.
bool drop_kernel_stamp(std::string_view& text, std::string_view& stamp) {
    auto rest = text;
    if (!drop(rest, "[")) return false;
    drop_blanks(rest);
    const auto begin = rest;
    if (drop_word(rest, days)) {
        if (!drop(rest, " ") || !drop_day_and_clock(rest) || !drop(rest, " ") || !drop_digits(rest, 4, 4))
            return false;
    } else {
        if (!drop_digits(rest, 1, 12) || !drop(rest, ".") || !drop_digits(rest, 6, 6)) return false;
        stamp = begin.substr(0, begin.size() - rest.size());
    }
    if (!drop(rest, "] ")) return false;
    text = rest;
    if (drop(rest, "[")) {  // the thread or processor that printed it
        drop_blanks(rest);
        if ((drop(rest, "T") || drop(rest, "C")) && drop_digits(rest, 1, 10) && drop(rest, "] ")) text = rest;
    }
    return true;
}

// "gpu7 kernel: "
bool drop_host_and_tag(std::string_view& text, std::string_view& host, std::string_view tag = "kernel: ") {
    auto rest = text;
    const auto end = rest.find(' ');
    if (end == std::string_view::npos || end == 0 || end > 255) return false;
    rest.remove_prefix(end + 1);
    if (!drop(rest, tag)) return false;
    host = text.substr(0, end);
    text = rest;
    return true;
}

}  // namespace

result<kmsg_trust> kmsg_trust_from(std::string_view name) {
    const auto it = std::ranges::find(trust_names, name);
    if (it != trust_names.end()) return static_cast<kmsg_trust>(it - trust_names.begin());
    return fail(errc::invalid_input, fmt::format("[fault] kmsg_trust is \"{}\"", name),
                "expected \"kernel\", \"syslog\" or \"injected\"");
}

std::string_view name_of(kmsg_trust trust) { return trust_names.at(static_cast<std::size_t>(trust)); }

kernel_log::parted kernel_log::part(std::string_view line) {
    parted out;
    auto rest = line;
    std::string_view stamp;
    if (drop(rest, "<")) {  // dmesg --raw
        const auto priority = scan::take_number(rest);
        if (!priority || !drop(rest, ">")) return {form::plain, {}, line, 0};
        out.facility = *priority >> 3;
        out.how = form::stamped;
        // "<2>1 2026-11-21T02:00:01+01:00 gpu7 kernel - - - ": RFC 5424, as rsyslog writes it
        if (auto dated = rest; drop(dated, "1 ")) {
            const auto begin = dated;
            if (drop_iso(dated)) {
                out.date = begin.substr(0, begin.size() - dated.size());
                out.how = form::syslog;
                out.text = {};
                if (drop(dated, " ") && drop_host_and_tag(dated, out.host, "kernel - - - ")) {
                    drop_kernel_stamp(dated, out.stamp);
                    out.text = dated;
                }
                return out;
            }
        }
    }
    if (drop_kernel_stamp(rest, stamp)) {
        out.how = form::stamped;
        out.stamp = stamp;
        auto after = rest;
        if (drop_host_and_tag(after, out.host))
            return {form::syslog, stamp, after, out.facility, out.host, stamp};  // short-monotonic
    } else if (auto dated = rest; drop_day_and_clock(dated) || drop_iso(dated)) {
        const auto date = rest.substr(0, rest.size() - dated.size());
        if (drop(dated, " ")) {
            if (drop_host_and_tag(dated, out.host)) {
                drop_kernel_stamp(dated, stamp);
                return {form::syslog, stamp, dated, out.facility, out.host, date};
            }
            // dmesg --time-format iso has no host; every other line of this kind is another program's.
            if (rest.front() >= '0' && rest.front() <= '9')
                return {form::stamped, {}, dated, out.facility, {}, date};
            return {form::syslog, {}, {}, out.facility, {}, date};
        }
    }
    out.text = rest;
    return out;
}

bool kernel_log::believes(const parted& line) const {
    if (trust_ == kmsg_trust::injected) return line.facility <= 1;
    if (line.facility != 0) return false;
    switch (line.how) {
        case form::headed:
        case form::stamped:
            return true;
        case form::syslog:
            return trust_ == kmsg_trust::syslog;
        default:
            return false;
    }
}

void kernel_log::lines_of_record(std::string_view text, const sink& out) {
    auto end = text.find('\n');
    out(text.substr(0, end));
    // Only one message of the driver has several lines, and it holds nothing that a user chose. Any other
    // line feed in a record may stem from a name.
    if (end == std::string_view::npos || !text.starts_with("NVRM: The NVIDIA GPU ")) return;
    for (int more = 0; more < 2 && end != std::string_view::npos; ++more) {
        text.remove_prefix(end + 1);
        end = text.find('\n');
        out(text.substr(0, end));
    }
}

kernel_log::origin kernel_log::origin_of(std::string_view raw) {
    const auto found = part(raw);
    origin out;
    out.formed = found.how != form::plain;
    out.host = found.host;
    out.time = found.date.empty() ? found.stamp : found.date;
    if (out.formed) return out;
    // A record's head: "6,1234,5678901,-;"
    const auto end = raw.find(';');
    const auto head = raw.substr(0, end > 96 ? 0 : end);
    const auto first = head.find(','),
               second = first == std::string_view::npos ? first : head.find(',', first + 1),
               third = second == std::string_view::npos ? second : head.find(',', second + 1);
    if (third == std::string_view::npos || head.find_first_not_of("0123456789,") < third) return out;
    out.formed = true;
    out.time = head.substr(second + 1, third - second - 1);
    return out;
}

kernel_log::outcome kernel_log::read(std::string_view raw, const sink& out) {
    outcome told;
    const auto record = parse_kmsg(raw, told.dirty);
    if (record.continued) {
        // The OOM killer's line is printed in parts, and one of them begins with a cgroup's name.
        told.refused = begins_as_fault(record.text);
        return told;
    }
    parted line;
    if (record.has_head)
        line = {form::headed, {}, record.text, record.priority >> 3};
    else if (device_)
        return told;  // a device gives nothing else
    else
        line = part(record.text);
    if (device_) {
        told.refused = !believes(line) && begins_as_fault(line.text);
        if (believes(line)) lines_of_record(line.text, out);
        return told;
    }
    if (form_ == form::unknown && line.how != form::plain) form_ = line.how;
    const bool other_form = trust_ != kmsg_trust::injected && form_ != form::unknown && line.how != form_;
    // A line feed in a record: readers of the old interface stamp each of its lines alike. Two records of the
    // same microsecond are taken for one, unless the first was a fault itself.
    const bool same_record = !line.stamp.empty() && line.stamp == last_stamp_ && !last_was_fault_;
    const bool fault = begins_as_fault(line.text);
    if (!line.stamp.empty()) last_stamp_ = line.stamp;
    const bool believed = believes(line) && !other_form && !same_record;
    last_was_fault_ = believed && fault;
    told.refused = !believed && fault && !same_record && !other_form;
    if (believed) lines_of_record(line.text, out);
    return told;
}

}  // namespace banyan::fault
