// SPDX-License-Identifier: BSD-3-Clause
//
// banyan.conf: one TOML file, one table per part, strict keys. Load, read every key with its default and
// range, then finish(): a key that nobody asked for is an error with the nearest valid one.
//
//     BANYAN_TRY(auto file, config_file::load(path));
//     auto section = file.section("ckptd");
//     config.lease = section.duration("lease", std::chrono::minutes(10));
//     BANYAN_CHECK(section.finish());
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"

namespace banyan {

/// Reads one table. Remembers the first error; every reader returns its default after it. Not thread-safe.
class config_section {
  public:
    std::string string(const std::string& key, std::string fallback);
    std::int64_t integer(const std::string& key, std::int64_t fallback, std::int64_t min, std::int64_t max);
    bool boolean(const std::string& key, bool fallback);
    std::chrono::milliseconds duration(const std::string& key, std::chrono::milliseconds fallback);
    std::uint64_t bytes(const std::string& key, std::uint64_t fallback);
    std::vector<std::string> strings(const std::string& key, std::vector<std::string> fallback);

    /// The first wrong value, or the first key that was never asked for.
    result<void> finish();

  private:
    friend class config_file;
    struct impl;
    std::shared_ptr<impl> impl_;
};

class config_file {
  public:
    /// A missing file is an error; an empty path gives an empty configuration (all defaults).
    static result<config_file> load(const std::filesystem::path& path);
    /// The table [name]; one that is absent reads as all defaults.
    config_section section(const std::string& name) const;

  private:
    struct impl;
    std::shared_ptr<const impl> impl_;
};

/// Where banyan.conf is: $BANYAN_CONF, else /etc/banyan/banyan.conf when that exists, else empty (all
/// defaults).
std::filesystem::path default_config_path();
/// The same without the environment, for root inside programs of others.
std::filesystem::path installed_config_path();

}  // namespace banyan
