// SPDX-License-Identifier: BSD-3-Clause
//
// Takes tokens off the front of one line, and knows in which column it stands.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include <banyan/topo/fabric.hpp>

namespace banyan::topo {

class cursor {
  public:
    explicit cursor(std::string_view line) : line_(line), rest_(line) {}

    bool skip(std::string_view text) {
        if (!rest_.starts_with(text)) return false;
        rest_.remove_prefix(text.size());
        return true;
    }
    void blanks() {
        while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
    }
    template <class Number>
    std::optional<Number> number(int base = 10) {
        Number value{};
        const auto [end, ec] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
        if (ec != std::errc{}) return std::nullopt;
        rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
        return value;
    }
    /// Text up to `stop` (which is taken too); nothing is taken when `stop` is absent.
    std::optional<std::string_view> until(char stop) {
        const auto at = rest_.find(stop);
        if (at == std::string_view::npos) return std::nullopt;
        const auto out = rest_.substr(0, at);
        rest_.remove_prefix(at + 1);
        return out;
    }
    /// Text up to the next blank.
    std::string_view word() {
        const auto out = rest_.substr(0, rest_.find_first_of(" \t"));
        rest_.remove_prefix(out.size());
        return out;
    }
    std::string_view rest() const { return rest_; }
    std::uint32_t column() const { return static_cast<std::uint32_t>(line_.size() - rest_.size()) + 1; }

  private:
    std::string_view line_, rest_;
};

/// "4xNDR", "4x NDR", "4x???": what is unknown is 0.
link_rate take_rate(cursor& c);

}  // namespace banyan::topo
