// SPDX-License-Identifier: BSD-3-Clause
#include "common/config.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <toml++/toml.h>

#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan {

struct config_file::impl {
    std::string path;
    toml::table table;
};

struct config_section::impl {
    std::string path;
    std::string name;
    std::shared_ptr<const void> file;    // keeps `table` alive
    const toml::table* table = nullptr;  // not a copy: toml++ drops source positions when it copies
    std::vector<std::string> asked;
    std::optional<error> first_error;

    const toml::node* find(const std::string& key) {
        asked.push_back(key);
        return first_error || !table ? nullptr : table->get(key);
    }
    void wrong(const std::string& key, const toml::node& node, std::string_view expected) {
        if (!first_error)
            first_error = error{
                errc::invalid_input,
                fmt::format("{}:{}: [{}] {} is not {}", path, node.source().begin.line, name, key, expected),
                {}};
    }
};

namespace {

/// Everything in banyan.conf stands in one of its tables; each table's own keys are checked by whoever reads
/// it.
result<void> only_known_tables(const toml::table& file, const std::string& path) {
    const std::vector<std::string> known{"munge", "peers", "topo", "ckptd", "fault"};
    for (const auto& [key, node] : file) {
        const std::string name(key.str());
        const auto where = fmt::format("{}:{}", path, node.source().begin.line);
        if (std::find(known.begin(), known.end(), name) == known.end()) {
            const auto close = nearest(name, known);
            return fail(errc::invalid_input, fmt::format("{}: there is no [{}]", where, name),
                        close.empty() ? "the tables are [munge], [peers], [topo], [ckptd] and [fault]"
                                      : fmt::format("did you mean [{}]?", close));
        }
        if (!node.is_table())
            return fail(errc::invalid_input, fmt::format("{}: {} is no table", where, name));
    }
    return {};
}

}  // namespace

result<config_file> config_file::load(const std::filesystem::path& path) {
    auto loaded = std::make_shared<impl>();
    loaded->path = path.string();
    if (!path.empty()) {
        constexpr std::size_t most = 1 << 20;
        BANYAN_TRY(const auto text, read_file(path, most));
        try {
            loaded->table = toml::parse(text, path.string());
        } catch (const toml::parse_error& e) {
            return fail(errc::invalid_input, fmt::format("{}:{}:{}: {}", path.string(), e.source().begin.line,
                                                         e.source().begin.column, e.description()));
        }
        BANYAN_CHECK(only_known_tables(loaded->table, loaded->path));
    }
    config_file out;
    out.impl_ = std::move(loaded);
    return out;
}

config_section config_file::section(const std::string& name) const {
    config_section out;
    out.impl_ = std::make_shared<config_section::impl>();
    out.impl_->path = impl_->path;
    out.impl_->name = name;
    out.impl_->file = impl_;
    out.impl_->table = impl_->table.get_as<toml::table>(name);
    return out;
}

std::string config_section::string(const std::string& key, std::string fallback) {
    const auto* node = impl_->find(key);
    if (!node) return fallback;
    if (const auto value = node->value_exact<std::string>()) return *value;
    impl_->wrong(key, *node, "a string");
    return fallback;
}

std::int64_t config_section::integer(const std::string& key, std::int64_t fallback, std::int64_t min,
                                     std::int64_t max) {
    const auto* node = impl_->find(key);
    if (!node) return fallback;
    if (const auto value = node->value_exact<std::int64_t>(); value && *value >= min && *value <= max)
        return *value;
    impl_->wrong(key, *node, fmt::format("a number from {} to {}", min, max));
    return fallback;
}

bool config_section::boolean(const std::string& key, bool fallback) {
    const auto* node = impl_->find(key);
    if (!node) return fallback;
    if (const auto value = node->value_exact<bool>()) return *value;
    impl_->wrong(key, *node, "true or false");
    return fallback;
}

std::chrono::milliseconds config_section::duration(const std::string& key,
                                                   std::chrono::milliseconds fallback) {
    const auto* node = impl_->find(key);
    if (!node) return fallback;
    if (const auto text = node->value_exact<std::string>())
        if (const auto value = parse_duration(*text)) return *value;
    impl_->wrong(key, *node, "a duration such as \"250ms\", \"10s\" or \"5m\"");
    return fallback;
}

std::uint64_t config_section::bytes(const std::string& key, std::uint64_t fallback) {
    const auto* node = impl_->find(key);
    if (!node) return fallback;
    if (const auto text = node->value_exact<std::string>())
        if (const auto value = parse_bytes(*text)) return *value;
    impl_->wrong(key, *node, "a size such as \"64M\" or \"1.5G\"");
    return fallback;
}

std::vector<std::string> config_section::strings(const std::string& key, std::vector<std::string> fallback) {
    const auto* node = impl_->find(key);
    if (!node) return fallback;
    std::vector<std::string> out;
    if (const auto* array = node->as_array())
        for (const auto& item : *array)
            if (const auto value = item.value_exact<std::string>()) out.push_back(*value);
    if (!node->is_array() || out.size() != node->as_array()->size()) {
        impl_->wrong(key, *node, "a list of strings");
        return fallback;
    }
    return out;
}

result<void> config_section::finish() {
    if (impl_->first_error) return std::unexpected(*impl_->first_error);
    if (!impl_->table) return {};
    for (const auto& [key, node] : *impl_->table) {
        const std::string name(key.str());
        if (std::find(impl_->asked.begin(), impl_->asked.end(), name) != impl_->asked.end()) continue;
        const auto close = nearest(name, impl_->asked);
        return fail(errc::invalid_input,
                    fmt::format("{}:{}: [{}] has no key \"{}\"", impl_->path, node.source().begin.line,
                                impl_->name, name),
                    close.empty() ? "" : fmt::format("did you mean \"{}\"?", close));
    }
    return {};
}

std::filesystem::path default_config_path() {
    if (const char* named = std::getenv("BANYAN_CONF"); named && *named) return named;
    return installed_config_path();
}

std::filesystem::path installed_config_path() {
    const std::filesystem::path standard = "/etc/banyan/banyan.conf";
    std::error_code ignored;
    return std::filesystem::exists(standard, ignored) ? standard : std::filesystem::path{};
}

}  // namespace banyan
