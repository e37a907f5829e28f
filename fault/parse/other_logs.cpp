// SPDX-License-Identifier: BSD-3-Clause
//
// UFM's event log, the fabric manager's log, NCCL's warnings, as events to be shown.
#include "fault/catalog/symptom.hpp"
#include "fault/parse/reading.hpp"
#include "fault/sources/program_logs.hpp"
#include "fault/sources/ufm_log.hpp"

namespace banyan::fault {
namespace {
constexpr std::size_t most_shown = 480;
}

std::optional<reading> ufm_reading(std::string_view text, bool& form) {
    auto found = ufm_line(text, &form);
    if (!found) return {};
    auto out = weighed(found->weight);
    out.source = "ufm";
    out.time = std::move(found->time);
    out.kind = found->kind;
    out.code = found->code;
    out.node = std::move(found->node);
    out.device = found->ends.empty() ? std::move(found->port) : std::move(found->ends);
    out.text = std::move(found->text);
    return out;
}

std::optional<reading> fabric_manager_reading(std::string_view text, bool& form) {
    auto found = fabric_manager_line(text, &form);
    if (!found) return {};
    auto out = reading_of(found->fault, text.substr(0, most_shown));
    out.source = "fabric-manager";
    out.time = std::move(found->time);
    out.fault.reset();  // the kernel's log tells of it, too
    return out;
}

std::optional<reading> nccl_reading(std::string_view text, bool& form) {
    auto found = nccl_line(text, &form);
    if (!found) return {};
    auto out = weighed(precedence::app);
    out.source = "nccl";
    out.time = std::move(found->time);
    out.node = std::move(found->host);
    out.kind = catalog::find_symptom(static_cast<std::uint32_t>(found->what))->name;
    out.device = std::move(found->hca);
    out.code = found->status;
    out.text = text.substr(0, most_shown);
    return out;
}

}  // namespace banyan::fault
