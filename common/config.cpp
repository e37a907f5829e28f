// SPDX-License-Identifier: BSD-3-Clause
#include "common/config.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "common/config_value.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan {

struct config_file::impl {
    std::string path;
    toml::table table;
};

struct config_section::impl {
    std::string path, name, node;
    std::shared_ptr<const void> file;    // keeps `table` alive
    const toml::table* table = nullptr;  // not a copy: toml++ drops source positions when it copies
};

namespace {

const config_key& known_key(std::string_view table, std::string_view name,
                            std::initializer_list<config_type> types) {
    const auto* key = find_config_key(table, name);
    if (!key || std::ranges::find(types, key->type) == types.end())
        throw std::logic_error(fmt::format("[{}] {} is no key of this type", table, name));
    return *key;
}

/// What the table has under the key, or else its default, by `read`.
template <class Read>
auto value_of(const toml::table* table, const config_key& key, Read read) {
    if (const auto* node = table ? table->get(key.name) : nullptr)
        if (auto value = read(*node, key)) return *value;
    const auto standard = toml::parse(fmt::format("v = {}", key.fallback));
    return read(*standard.get("v"), key).value();
}

std::vector<std::string> names(const auto& things) {
    std::vector<std::string> out;
    for (const auto& thing : things) out.emplace_back(thing.name);
    return out;
}

result<void> only_known_tables(const toml::table& file, const std::string& path) {
    const auto known = names(config_tables());
    for (const auto& [key, node] : file) {
        const std::string name(key.str());
        const auto where = fmt::format("{}:{}", path, node.source().begin.line);
        if (std::ranges::find(known, name) == known.end()) {
            const auto close = nearest(name, known);
            return fail(errc::invalid_input, fmt::format("{}: there is no [{}]", where, name),
                        close.empty() ? fmt::format("the tables are [{}]", fmt::join(known, "], ["))
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

config_file config_file::defaults() {
    config_file out;
    out.impl_ = std::make_shared<impl>();
    return out;
}

config_section config_file::section(std::string_view name, std::string_view node) const {
    auto found = std::make_shared<config_section::impl>();
    found->path = impl_->path;
    found->name = name;
    found->node = node;
    found->file = impl_;
    found->table = impl_->table.get_as<toml::table>(name);
    config_section out;
    out.impl_ = std::move(found);
    return out;
}

void config_section::field(std::string_view name, std::string& into) const {
    using enum config_type;
    const auto& key = known_key(impl_->name, name, {text, node_text, path, choice});
    into = value_of(impl_->table, key, text_of);
    const auto& node = impl_->node;
    if (node.empty() || (key.type != path && key.type != node_text)) return;
    for (auto at = into.find("%n"); at != std::string::npos; at = into.find("%n", at + node.size()))
        into.replace(at, 2, node);
}

void config_section::field(std::string_view name, bool& into) const {
    into = value_of(impl_->table, known_key(impl_->name, name, {config_type::flag}), flag_of);
}

void config_section::field(std::string_view name, std::chrono::milliseconds& into) const {
    into = value_of(impl_->table, known_key(impl_->name, name, {config_type::duration}), duration_of);
}

void config_section::field(std::string_view name, std::vector<std::string>& into) const {
    into = value_of(impl_->table, known_key(impl_->name, name, {config_type::list}), list_of);
}

std::uint64_t config_section::unsigned_value(std::string_view name) const {
    using enum config_type;
    return value_of(impl_->table, known_key(impl_->name, name, {number, size}), number_of);
}

std::string config_section::text(std::string_view key) const {
    std::string out;
    field(key, out);
    return out;
}

result<void> config_section::check() const {
    if (!impl_->table) return {};
    std::vector<std::string> known;
    for (const auto& key : config_keys())
        if (key.table == impl_->name) known.emplace_back(key.name);
    for (const auto& [written, node] : *impl_->table) {
        const std::string name(written.str());
        const auto where = fmt::format("{}:{}: [{}]", impl_->path, node.source().begin.line, impl_->name);
        const auto* key = find_config_key(impl_->name, name);
        if (!key) {
            const auto close = nearest(name, known);
            return fail(errc::invalid_input, fmt::format("{} has no key \"{}\"", where, name),
                        close.empty() ? "" : fmt::format("did you mean \"{}\"?", close));
        }
        if (!is_right(node, *key))
            return fail(errc::invalid_input, fmt::format("{} {} is not {}", where, name, expected(*key)));
    }
    return {};
}

result<std::vector<std::string>> check_config(const std::filesystem::path& path) {
    BANYAN_TRY(const auto file, config_file::load(path));
    for (const auto& table : config_tables()) BANYAN_CHECK(file.section(table.name).check());
    std::vector<std::string> notes;
    const auto sweep = file.section("sweep");
    std::uint32_t gpus = 0, allreduce = 0;
    sweep.field("gpus", gpus);
    sweep.field("allreduce", allreduce);
    if (gpus == 1 && allreduce > 0)
        notes.emplace_back(
            "[sweep] allreduce is left out where gpus = 1: an all-reduce of one GPU is no check");
    return notes;
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
