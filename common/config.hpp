// SPDX-License-Identifier: BSD-3-Clause
//
// banyan.conf: TOML, one table per part, strict keys (config_keys.hpp); then the files banyan.conf.d/*.conf
// in the order of their names, whose keys win. One function over a part's settings reads them and writes
// them:
//
//     template <class Section, class Settings>
//     void fields(Section& s, Settings& to) { s.field("retention", to.retention); ... }
//
//     BANYAN_TRY(const auto file, config_file::load(path));
//     auto section = file.section("ckptd", node);
//     BANYAN_CHECK(section.check());
//     fields(section, settings);
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan {

/// One table. A key that is absent, or whose value is wrong, has its default; a key that config_keys() does
/// not have, or has with another type, is a bug (std::logic_error).
class config_section {
  public:
    void field(std::string_view key, std::string& into) const;
    void field(std::string_view key, bool& into) const;
    void field(std::string_view key, std::chrono::milliseconds& into) const;
    void field(std::string_view key, std::vector<std::string>& into) const;
    template <std::unsigned_integral T>
    void field(std::string_view key, T& into) const {
        into = static_cast<T>(unsigned_value(key));  // the table's range is within T
    }
    std::string text(std::string_view key) const;

    /// The first key that does not exist, or value of the wrong type or out of range, with file and line.
    result<void> check() const;

  private:
    friend class config_file;
    struct impl;
    std::uint64_t unsigned_value(std::string_view key) const;
    std::shared_ptr<const impl> impl_;
};

class config_file {
  public:
    /// With the files beside it (config_parts). A missing file is an error; an empty path gives an empty
    /// configuration (all defaults). Tables that do not exist are an error; what stands in each is checked by
    /// who reads it (config_section::check).
    static result<config_file> load(const std::filesystem::path& path);
    static config_file defaults();
    /// The table [name]; one that is absent reads as all defaults. `node` stands for %n where a key has it;
    /// empty = %n stays.
    config_section section(std::string_view name, std::string_view node = {}) const;

  private:
    struct impl;
    std::shared_ptr<const impl> impl_;
};

/// The files that make up the configuration at `path`, in the order in which they are read: itself, which may
/// be missing where there are others, then PATH.d/*.conf. None for an empty path.
result<std::vector<std::filesystem::path>> config_parts(const std::filesystem::path& path);

/// All tables of a file, for --check-config. What runs checks only those that it reads, so that a wrong word
/// in another part's table, or a newer part's key, does not stop it. Sentences on what is right, and yet
/// without effect.
result<std::vector<std::string>> check_config(const std::filesystem::path& path);

/// A table with the values in force, as TOML.
class config_text {
  public:
    explicit config_text(std::string_view table);
    void field(std::string_view key, const std::string& value);
    void field(std::string_view key, bool value);
    void field(std::string_view key, std::chrono::milliseconds value);
    void field(std::string_view key, const std::vector<std::string>& value);
    template <std::unsigned_integral T>
    void field(std::string_view key, T value) {
        unsigned_field(key, value);
    }
    const std::string& text() const { return text_; }

  private:
    void unsigned_field(std::string_view key, std::uint64_t value);
    std::string table_;
    std::string text_;
};

/// Where banyan.conf is: $BANYAN_CONF, else /etc/banyan/banyan.conf when that or a file of banyan.conf.d
/// exists, else empty (all defaults).
std::filesystem::path default_config_path();
/// The same without the environment, for root inside programs of others.
std::filesystem::path installed_config_path();

}  // namespace banyan
