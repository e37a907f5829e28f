// SPDX-License-Identifier: BSD-3-Clause
#include "topo/draw/html.hpp"

#include <string_view>

#include "topo/draw/escape.hpp"
#include "topo/draw/page.hpp"

namespace banyan::topo::draw {
namespace {

/// The page's template names its parts as {{part}}; a part is put in once and is not looked through itself.
std::string part(std::string_view name, const std::string& title, const std::string& data) {
    if (name == "title") return escape_markup(title);
    if (name == "style") return std::string(page::style);
    if (name == "script") return std::string(page::script);
    if (name == "data") return data;
    return {};
}

}  // namespace

std::string to_html(const fabric& f, const job* j, const std::string& title) {
    const auto name = title.empty() ? std::string("Fabric") : title;
    const auto data = page_data(f, j, name);
    std::string out;
    out.reserve(data.size() + (64u << 10));
    std::string_view rest = page::frame;
    while (true) {
        const auto begin = rest.find("{{");
        const auto end = rest.find("}}", begin);
        out += rest.substr(0, begin);
        if (begin == std::string_view::npos || end == std::string_view::npos) return out;
        out += part(rest.substr(begin + 2, end - begin - 2), name, data);
        rest.remove_prefix(end + 2);
    }
}

}  // namespace banyan::topo::draw
