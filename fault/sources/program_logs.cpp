// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/program_logs.hpp"

#include <algorithm>

#include "fault/sources/scan.hpp"

namespace banyan::fault {
namespace {

using scan::drop;
using scan::drop_clock;
using scan::drop_digits;
using scan::take_number;
using scan::take_until;

constexpr std::size_t most_message = 400;

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

// "mlx5_3", "mlx5_bond_0", "bnxt_re0": a device's name and nothing else, since a user wrote it.
std::string hca_at(std::string_view text) {
    const auto end = std::min(text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789"), text.size());
    return end == 0 || end > 16 ? std::string() : std::string(text.substr(0, end));
}

// What stands after "NCCL WARN ".
void read_warning(std::string_view rest, nccl_event& out) {
    using catalog::symptom;
    if (rest.starts_with("Cuda failure ") || rest.find(" unhandled cuda error") != std::string_view::npos) {
        out.what = symptom::nccl_cuda;
        return;
    }
    if (!drop(rest, "NET/IB : ") && !drop(rest, "NET/IB: ")) return;
    out.what = symptom::nccl_network;
    if (drop(rest, "Got completion from peer ")) {
        out.what = symptom::nccl_completion;
        const auto at = rest.find(" with status=");
        auto status = rest.substr(std::min(at == std::string_view::npos ? at : at + 13, rest.size()));
        if (const auto number = take_number(status)) out.status = *number;
        if (const auto hca = rest.rfind(" hca "); hca != std::string_view::npos)
            out.hca = hca_at(rest.substr(hca + 5));
    } else if (const auto at = rest.find(" Got async event : "); at <= 32) {
        out.what = symptom::nccl_async_event;
        out.hca = hca_at(rest);
    }
}

}  // namespace

std::optional<fabric_manager_event> fabric_manager_line(std::string_view text, bool* form) {
    auto rest = text;
    if (!drop(rest, "[") || rest.size() < 20 || !std::ranges::all_of(rest.substr(0, 3), is_letter)) return {};
    rest.remove_prefix(3);
    if (!drop(rest, " ") || !drop_digits(rest, 1, 2) || !drop(rest, " ") || !drop_digits(rest, 4, 4) ||
        !drop(rest, " ") || !drop_clock(rest))
        return {};
    const auto time = text.substr(1, text.size() - rest.size() - 1);
    if (!drop(rest, "] [") || !take_until(rest, "] [tid ", 12) || !drop_digits(rest, 1, 12) ||
        !drop(rest, "] "))
        return {};
    if (form) *form = true;
    const auto message = rest;
    if (!drop(rest, "detected NVSwitch ")) return {};
    const bool fatal = drop(rest, "fatal error ");
    if (!fatal && !drop(rest, "non-fatal error ")) return {};
    const auto code = take_number(rest);
    if (!code || !rest.starts_with(" on ")) return {};
    fabric_manager_event out;
    out.time = time;
    out.fault.kind = fault_kind::sxid;
    out.fault.code = *code;
    out.fault.severity = fatal ? link_severity::fatal : link_severity::nonfatal;
    out.fault.message = message.substr(0, most_message);
    constexpr std::string_view mark = " pci bus id ";
    if (const auto at = rest.find(mark); at != std::string_view::npos)
        if (auto place = take_bdf(rest.substr(at + mark.size()))) {
            out.fault.bdf = std::move(place->first);
            auto& after = place->second;
            if (const auto port = after.rfind(" port "); port != std::string_view::npos) {
                after.remove_prefix(port + 6);
                if (const auto n = take_number(after)) out.fault.link = static_cast<int>(std::min(*n, 4095u));
            }
        }
    return out;
}

std::optional<nccl_event> nccl_line(std::string_view text, bool* form) {
    auto rest = text;
    nccl_event out;
    if (drop(rest, "[")) {  // NCCL_DEBUG_TIMESTAMP_FORMAT's default
        if (!scan::drop_date_and_clock(rest)) return {};
        out.time = text.substr(1, text.size() - rest.size() - 1);
        if (!drop(rest, "] ")) return {};
    }
    const auto host = take_until(rest, ":", 255);
    if (!host || host->empty() || host->find(' ') != std::string_view::npos) return {};
    const auto pid = take_number(rest);
    if (!pid || !drop(rest, ":") || !drop_digits(rest, 1, 10) || !drop(rest, " [") ||
        !drop_digits(rest, 1, 5) || !drop(rest, "] "))
        return {};
    // "[transport/net_ib.cc:2244 ]NCCL WARN ..."
    if (!rest.starts_with("NCCL ")) {
        const auto file = take_until(rest, " ", 128);
        if (!file || file->find(':') == std::string_view::npos) return {};
    }
    if (!drop(rest, "NCCL ")) return {};
    if (form) *form = true;
    if (!drop(rest, "WARN ")) return {};
    out.host = *host;
    out.pid = *pid;
    read_warning(rest, out);
    return out;
}

}  // namespace banyan::fault
