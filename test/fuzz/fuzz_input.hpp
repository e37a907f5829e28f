// SPDX-License-Identifier: BSD-3-Clause
//
// A fuzzer's bytes as numbers and texts, taken from the front. When they run out everything is zero or empty.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::fuzz {

class input {
  public:
    input(const std::uint8_t* data, std::size_t size) : rest_(reinterpret_cast<const char*>(data), size) {}

    bool empty() const { return rest_.empty(); }
    std::string_view rest() const { return rest_; }

    template <class Number>
    Number number() {
        Number value{};
        const auto n = std::min(sizeof value, rest_.size());
        if (n != 0) std::memcpy(&value, rest_.data(), n);
        rest_.remove_prefix(n);
        return value;
    }
    std::uint8_t byte() { return number<std::uint8_t>(); }
    /// 0 to `most`.
    std::uint32_t up_to(std::uint32_t most) { return number<std::uint32_t>() % (most + 1); }
    /// Up to the next zero byte, which is left out.
    std::string_view text() {
        const auto end = std::min(rest_.find('\0'), rest_.size());
        const auto out = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        return out;
    }

  private:
    std::string_view rest_;
};

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
    return {reinterpret_cast<const char*>(data), size};
}

/// What must hold whatever the input is.
inline void must(bool holds) {
    if (!holds) std::abort();
}

}  // namespace banyan::fuzz
