// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/agreement/member.hpp"

#include <utility>

namespace banyan::ckpt::agreement {

std::optional<body> member::outbid_by(const ballot& number) const {
    if (number < promised_) return outbid{promised_};
    return std::nullopt;
}

inventory member::what_i_hold(const shelf& copies) const {
    inventory out;
    out.number = promised_;
    out.life = life_;
    out.copies = copies.checked();
    out.replicated = copies.newest(level::replicated);
    out.accepted = accepted_;
    out.key = key_;
    out.forgetful = forgetful_;
    out.had = copies.newest_part();
    out.begun = copies.begun();
    return out;
}

member::orders member::on(const collect& m, const shelf& copies) {
    if (auto higher = outbid_by(m.number)) return {higher, {}, false};
    promised_ = m.number;
    bringing_.reset();
    return {what_i_hold(copies), {}, false};
}

member::orders member::on(const prepare& m, const shelf& copies) {
    if (auto higher = outbid_by(m.number)) return {higher, {}, false};
    // What the coordinator was told of this daemon it was told in another life, which may have known more.
    if (promised_ < m.number || m.life != life_) return on(collect{m.number}, copies);
    if (accepted_ == m.number) return {prepared{m.number, {}}, {}, false};
    if (released_) {
        // The ranks have gone. An attempt that knows of it asks for the same again, with nothing to bring.
        if (m.what.key != key_) return {};
        accepted_ = m.number;
        return {prepared{m.number, {}}, {}, false};
    }
    if (bringing_ && bringing_->number == m.number) return {};  // on its way
    bringing_ = m;
    return {{}, m, false};
}

member::orders member::brought(const ballot& number, std::vector<std::uint32_t> failed) {
    if (!bringing_ || bringing_->number != number || number < promised_) return {};
    const auto done = *std::exchange(bringing_, std::nullopt);
    if (!failed.empty()) return {prepared{number, std::move(failed)}, {}, false};
    accepted_ = number;
    key_ = done.what.key;
    return {prepared{number, {}}, {}, false};
}

member::orders member::on(const release& m) {
    if (auto higher = outbid_by(m.number)) return {higher, {}, false};
    if (accepted_ != m.number) return {};  // not prepared by this daemon in this life
    const bool first = !std::exchange(released_, true);
    replicated_ = m.replicated;
    all_heard_ = all_heard_ || m.all_heard;
    return {released{m.number}, {}, first};
}

}  // namespace banyan::ckpt::agreement
