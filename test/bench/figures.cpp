// SPDX-License-Identifier: BSD-3-Clause
#include "test/bench/figures.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace banyan::bench {
namespace {

nlohmann::ordered_json to_json(const figure& f) {
    nlohmann::ordered_json out{
        {"figure", f.name}, {"value", f.value}, {"unit", f.unit}, {"against", f.against}};
    out["goal"] = f.goal.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(f.goal);
    out["holds"] = f.holds ? nlohmann::ordered_json(*f.holds) : nlohmann::ordered_json();
    return out;
}

}  // namespace

void figures::add(const std::string& name, double value, const std::string& unit,
                  const std::string& against) {
    all_.push_back({name, value, unit, against, "", std::nullopt});
}

void figures::add(const std::string& name, double value, const std::string& unit, const std::string& against,
                  const std::string& sign, double goal) {
    all_.push_back({name, value, unit, against, fmt::format("{} {}", sign, goal),
                    sign == "<=" ? value <= goal : value >= goal});
}

void figures::failed(const std::string& name, const std::string& why) {
    all_.push_back({name, std::nan(""), "", "-", "not measured: " + why, false});
}

int figures::finish(const std::string& json_file) const {
    if (json_file.empty()) {
        for (const auto& f : all_)
            fmt::print("{:<72}{:>10.3f} {:<8}{:<24} {}\n", f.name, f.value, f.unit,
                       f.goal.empty() ? f.against : f.goal,
                       !f.holds   ? ""
                       : *f.holds ? "holds"
                                  : "MISSED");
        return 0;
    }
    auto list = nlohmann::ordered_json::array();
    for (const auto& f : all_) list.push_back(to_json(f));
    std::ofstream out(json_file);
    out << list.dump(1) << '\n';
    if (out.flush()) return 0;
    fmt::print(stderr, "cannot write the figures to {}\n", json_file);
    return 1;
}

double median(std::vector<double> of) {
    if (of.empty()) return 0;
    const auto middle = of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2);
    std::nth_element(of.begin(), middle, of.end());
    return *middle;
}

double thread_ms() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) / 1e6;
}

}  // namespace banyan::bench
