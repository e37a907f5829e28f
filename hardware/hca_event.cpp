// SPDX-License-Identifier: BSD-3-Clause
//
// Events of HCAs as text between two processes.
#include <array>

#include <nlohmann/json.hpp>

#include "common/json_fields.hpp"
#include "hardware/verbs.hpp"

namespace banyan::hardware {
namespace {

constexpr std::array<std::string_view, 5> news_words{"is-down", "is-up", "port-down", "port-up",
                                                     "device-fatal"};
constexpr std::size_t longest_device = 64;

}  // namespace

nlohmann::json to_json(const hca_event& e) {
    return {{"device", e.device},
            {"bdf", e.bdf},
            {"port", e.port},
            {"news", news_words[static_cast<std::size_t>(e.news)]}};
}

result<hca_event> hca_event_from(const nlohmann::json& told) {
    const json_fields in(told);
    hca_event out;
    BANYAN_TRY(out.device, in.text("device", longest_device));
    BANYAN_TRY(out.bdf, in.text("bdf", longest_device));
    BANYAN_TRY(const auto port, in.number("port", UINT8_MAX));
    BANYAN_TRY(const auto news, in.one_of("news", news_words));
    out.port = static_cast<std::uint32_t>(port);
    out.news = static_cast<hca_news>(news);
    return out;
}

}  // namespace banyan::hardware
