// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/line_splitter.hpp"

#include <algorithm>

namespace banyan::fault {

void line_splitter::keep(std::string_view part) {
    const auto room = max_line_ - half_.size();
    if (part.size() > room && !cutting_) {
        cutting_ = true;
        ++cut_lines_;
    }
    half_ += part.substr(0, std::min(room, part.size()));
}

void line_splitter::feed(std::string_view bytes, const sink& out) {
    std::uint64_t end = line_start_ + pending_;
    while (!bytes.empty()) {
        const auto at = bytes.find('\n');
        const auto part = bytes.substr(0, at);
        if (at == std::string_view::npos) {
            keep(part);
            pending_ += part.size();
            return;
        }
        end += part.size() + 1;
        bytes.remove_prefix(at + 1);
        if (half_.empty() && part.size() <= max_line_) {
            out(part, line_start_);
        } else {
            keep(part);
            out(half_, line_start_);
            half_.clear();
            cutting_ = false;
        }
        line_start_ = end;
        pending_ = 0;
    }
}

void line_splitter::restart(std::uint64_t offset) {
    half_.clear();
    cutting_ = false;
    pending_ = 0;
    line_start_ = offset;
}

}  // namespace banyan::fault
