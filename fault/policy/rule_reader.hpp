// SPDX-License-Identifier: BSD-3-Clause
//
// Reads one [[rule]] after the other, and collects all that is wrong. Internal to policy_file.cpp.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "fault/policy/policy_file.hpp"

namespace banyan::fault {

class rule_reader {
  public:
    explicit rule_reader(std::vector<policy_problem>& problems) : problems_(problems) {}

    rule read(const toml::table& from);
    void wrong(const toml::node& at, std::string what, std::string hint);

  private:
    void complain(const toml::node& at, std::string_view what, std::string hint);
    void name(const toml::table& from, rule& into);
    void action(const toml::table& from, rule& into);
    void window(const toml::table& from, rule& into);
    void refuse_to_accuse(const toml::table& from, const rule& read);
    void conditions(const toml::table& from, criteria& into);
    /// The places of the words among `known`.
    std::vector<std::size_t> words(const toml::table& from, const char* key,
                                   std::span<const std::string_view> known);
    /// The key's value, or those of its list.
    std::vector<const toml::node*> entries(const toml::table& from, const char* key);
    std::vector<number_range> numbers(const toml::table& from, const char* key);
    std::optional<number_range> range(const toml::node& item);

    std::vector<policy_problem>& problems_;
    std::map<std::string, std::uint32_t> names_;  // and the line of each
    std::size_t count_ = 0;
    std::string called_;  // how errors name the rule
};

}  // namespace banyan::fault
