// SPDX-License-Identifier: BSD-3-Clause
#include "train/plan_seal.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/munge.hpp"

namespace banyan::train {
namespace {

constexpr std::string_view credential_head = "MUNGE:";
// So that no other credential of the same user, such as Slurm's own, can stand for a plan.
constexpr std::string_view purpose = "banyan plan\n";

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool starts_with_any_case(std::string_view text, std::string_view upper_head) {
    return text.size() >= upper_head.size() &&
           std::equal(upper_head.begin(), upper_head.end(), text.begin(),
                      [](char wanted, char c) { return wanted == upper(c); });
}

}  // namespace

std::string plan_variable(std::size_t i) {
    return i == 0 ? "BANYAN_PLAN" : fmt::format("BANYAN_PLAN_{}", i + 1);
}

bool names_plan(std::string_view entry) {
    constexpr std::string_view prefix = "SPANK_";
    while (starts_with_any_case(entry, prefix)) entry.remove_prefix(prefix.size());
    return starts_with_any_case(entry, "BANYAN_PLAN");
}

result<std::string> seal_plan(const std::string& munge_socket, const plan& p) {
    BANYAN_TRY(auto sealed, munge::encode_compressed(munge_socket, std::string(purpose) + to_text(p)));
    if (sealed.size() > max_sealed_plan)
        return fail(errc::exhausted, fmt::format("the plan of {} nodes takes {} bytes, more than {}",
                                                 p.nodes.size(), sealed.size(), max_sealed_plan));
    return sealed;
}

std::vector<std::string> pieces_of(const std::string& sealed) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < sealed.size(); at += max_plan_piece)
        out.push_back(sealed.substr(at, max_plan_piece));
    return out;
}

bool looks_sealed(std::string_view text) {
    return text.starts_with(credential_head) && text.size() <= max_sealed_plan;
}

result<opened_plan> open_plan(const std::string& munge_socket, const std::string& sealed) {
    if (!looks_sealed(sealed)) return fail(errc::denied, "the plan is not one that slurmctld wrote");
    BANYAN_TRY(const auto credential, munge::decode_kept(munge_socket, sealed));
    if (!credential.payload.starts_with(purpose))
        return fail(errc::denied, "the plan is a credential for something else");
    opened_plan out;
    BANYAN_TRY(out.what, parse_plan(std::string_view(credential.payload).substr(purpose.size())));
    out.writer = credential.uid;
    return out;
}

}  // namespace banyan::train
