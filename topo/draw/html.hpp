// SPDX-License-Identifier: BSD-3-Clause
//
// A fabric, and a job on it, as one HTML file that needs nothing else: no network, no other file. The data
// stand in it as JSON, packed; the page (page/) unpacks them and draws what is unfolded.
#pragma once

#include <string>

#include "topo/draw/scene.hpp"

namespace banyan::topo::draw {

/// `j` may be null. An empty title becomes "Fabric".
std::string to_html(const fabric& f, const job* j, const std::string& title);

/// The data alone, as JSON that may stand in a <script>. The fields are listed in html_data.cpp.
std::string page_data(const fabric& f, const job* j, const std::string& title);

/// Numbers as text: the difference of each from the one before, in lower-case base 36; "d*n" stands for n
/// equal differences. Regular fabrics are mostly runs.
std::string pack(const std::vector<std::uint64_t>& numbers);

}  // namespace banyan::topo::draw
