// SPDX-License-Identifier: BSD-3-Clause
//
// Tables as the fabric's tools write them: a line of column names, then rows. Columns are found by name,
// since releases add some and turn their order.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace banyan::topo {

/// The fields of a line without the blanks around them. One that begins with a quote ends at a quote with a
/// separator or nothing behind it: the tools do not escape what stands between.
void split_row(std::string_view line, char separator, std::vector<std::string_view>& out);

/// A column's name without what differs between tools: "LinkDownedCounterExt", "link_downed_counter_extended"
/// and "LinkDownedCounter" are all "linkdowned".
std::string plain_name(std::string_view column);

/// Decimal, or hexadecimal with 0x in front, at most 64 bits.
std::optional<std::uint64_t> whole_number(std::string_view text);
/// The same always hexadecimal, whether 0x stands in front or not.
std::optional<std::uint64_t> hex_number(std::string_view text);
/// Not negative; also "1.5E-12". None for "N/A" and the like.
std::optional<double> real_number(std::string_view text);

class table {
  public:
    static constexpr std::size_t none = SIZE_MAX;

    /// Takes the line of names.
    void head(std::string_view line, char separator);
    /// Which column has one of these plain names; none where there is no such.
    std::size_t column(std::initializer_list<std::string_view> names) const;
    const std::vector<std::string>& names() const { return names_; }

    /// Takes a row; false where it has more or fewer fields than there are columns. A quoted text in the
    /// first column may hold whatever it likes: the other fields are then counted from the end.
    bool row(std::string_view line);
    /// Takes a row however many fields it has; returns how many.
    std::size_t split(std::string_view line) {
        split_row(line, separator_, fields_);
        return fields_.size();
    }
    /// Empty where the column is none or the row lacks it.
    std::string_view operator[](std::size_t column) const {
        return column < fields_.size() ? fields_[column] : std::string_view();
    }

  private:
    bool split_from_the_end(std::string_view line);

    char separator_ = ',';
    std::vector<std::string> names_;
    std::vector<std::string_view> fields_;
};

}  // namespace banyan::topo
