// SPDX-License-Identifier: BSD-3-Clause
//
// What every benchmark reports: a list of figures, as a table for people or as JSON for scripts/bench.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace banyan::bench {

struct figure {
    std::string name;
    double value = 0;
    std::string unit;
    std::string against;        ///< the limit or the peer of the same run
    std::string goal;           ///< "<= 1.25"; empty: none is set
    std::optional<bool> holds;  ///< with a goal
};

class figures {
  public:
    void add(const std::string& name, double value, const std::string& unit, const std::string& against);
    /// `sign` is "<=" or ">=".
    void add(const std::string& name, double value, const std::string& unit, const std::string& against,
             const std::string& sign, double goal);
    /// One that could not be measured: it has no value and does not hold.
    void failed(const std::string& name, const std::string& why);

    const std::vector<figure>& all() const { return all_; }

    /// Writes them to the file, or prints them when `json_file` is empty. Returns the program's exit status.
    int finish(const std::string& json_file) const;

  private:
    std::vector<figure> all_;
};

/// The middle one; of an even number the upper of the two. 0 of none.
double median(std::vector<double> of);

/// CPU time of this thread, in milliseconds: whatever else the machine does is no part of a difference.
double thread_ms();

}  // namespace banyan::bench
