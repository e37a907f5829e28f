// SPDX-License-Identifier: BSD-3-Clause
//
// What the agent wants to look at and cannot: said when it begins and when it ends, and a figure meanwhile.
// "I could not look" is never "there is nothing wrong".
#pragma once

#include <memory>
#include <set>
#include <string>

#include "fault/metrics/metrics.hpp"

namespace banyan::fault {

class sight {
  public:
    /// `of`: what is looked at, in the plural, "HCAs"; in lower case also the label of the figure.
    sight(std::string of, std::shared_ptr<metrics> counters);

    /// All that this look could not see, each as a sentence.
    void after_look(std::set<std::string> blind);
    const std::set<std::string>& blind() const { return blind_; }

  private:
    static constexpr std::size_t most_told = 16;

    std::string of_, label_;
    std::shared_ptr<metrics> metrics_;
    std::set<std::string> blind_;
};

}  // namespace banyan::fault
