// SPDX-License-Identifier: BSD-3-Clause
//
// Reads the fields of a JSON object that somebody else wrote: a peer, a file, a program. Each read says what
// it expects, and an error names the field by its path, what it is and what was expected:
//
//     "nodes[3].buddy" is -1, expected a number from 0 to 4095
//
// Nothing throws, whatever the object holds; operator[], at(), value() and get<>() of nlohmann::json do.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "common/result.hpp"

namespace banyan {

/// A view: the JSON must outlive it. A value that is no object has no fields. All errors are
/// errc::invalid_input. May be used by several threads.
class json_fields {
  public:
    /// `path` is the object's own in errors; empty for the outermost.
    explicit json_fields(const nlohmann::json& object, std::string path = {});

    bool has(const char* key) const;
    /// A whole number that is not negative.
    result<std::uint64_t> number(const char* key, std::uint64_t max = UINT64_MAX) const;
    /// A whole number that may be negative.
    result<std::int64_t> integer(const char* key, std::int64_t min = INT64_MIN,
                                 std::int64_t max = INT64_MAX) const;
    result<bool> flag(const char* key) const;
    /// At most `max` bytes.
    result<std::string> text(const char* key, std::size_t max = 4096) const;
    /// The place of a text among `names`.
    result<std::size_t> one_of(const char* key, std::span<const std::string_view> names) const;
    /// A list of at most `count` numbers, each no larger than T.
    template <class T = std::uint32_t>
    result<std::vector<T>> numbers(const char* key, std::size_t count) const {
        BANYAN_TRY(const auto all, wide_numbers(key, count, std::numeric_limits<T>::max()));
        return std::vector<T>(all.begin(), all.end());
    }
    /// A list of at most `count` texts of at most `max` bytes.
    result<std::vector<std::string>> texts(const char* key, std::size_t count, std::size_t max = 4096) const;
    result<json_fields> object(const char* key) const;
    /// A list of at most `count` objects. One that is none is found when its fields are read.
    result<std::vector<json_fields>> list(const char* key, std::size_t count = SIZE_MAX) const;
    /// The field's JSON; nullptr where there is none.
    const nlohmann::json* find(const char* key) const;

    // A field that may be missing: then `into` stays as it is.

    result<void> may(const char* key, std::string& into) const;
    result<void> may(const char* key, bool& into) const;
    template <std::integral T>
    result<void> may(const char* key, T& into) const {
        if (!has(key)) return {};
        if constexpr (std::is_signed_v<T>) {
            const auto n = integer(key, std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
            if (!n) return std::unexpected(n.error());
            into = static_cast<T>(*n);
        } else {
            const auto n = number(key, std::numeric_limits<T>::max());
            if (!n) return std::unexpected(n.error());
            into = static_cast<T>(*n);
        }
        return {};
    }

  private:
    result<std::vector<std::uint64_t>> wide_numbers(const char* key, std::size_t count,
                                                    std::uint64_t max) const;
    std::string path_of(std::string_view key) const;
    std::unexpected<error> wrong(std::string_view key, const nlohmann::json* value,
                                 std::string_view expected) const;

    const nlohmann::json* object_;
    std::string path_;
};

}  // namespace banyan
