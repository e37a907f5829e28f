// SPDX-License-Identifier: BSD-3-Clause
//
// Colours of both pictures. Blues are speeds, red and orange are kept for what is wrong, a job has calm
// colours of equal weight. The page has the same values in page/style.css and takes job colours from here.
#pragma once

#include <array>

#include "topo/draw/scene.hpp"

namespace banyan::topo::draw {

inline constexpr std::array job_colors{"#3f9c8a", "#7b6bb5", "#4f86c6", "#8aa344", "#b0679b",
                                       "#35a0b8", "#8c7860", "#5c6c90", "#62a866", "#a680cc"};

inline const char* job_color(std::uint32_t i) { return job_colors[i % job_colors.size()]; }

inline const char* rate_color(const link_rate& r) {
    const auto gbps = speed(r);
    if (gbps >= 800) return "#4f4a8c";
    if (gbps >= 400) return "#3568a3";
    if (gbps >= 200) return "#5b97bd";
    if (gbps >= 100) return "#86b3bd";
    return "#a3afb8";
}

/// Of something that is not well.
inline const char* health_color(health h) { return h == health::broken ? "#c8372d" : "#e08a1e"; }

}  // namespace banyan::topo::draw
