// SPDX-License-Identifier: BSD-3-Clause
#include "common/config.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "common/config_value.hpp"
#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan {

namespace {

/// A file of the configuration, or its part of one table.
struct file_part {
    std::string path;
    toml::table table;
};
struct table_part {
    std::string path;
    const toml::table* table;  // not a copy: toml++ drops source positions when it copies
};

}  // namespace

struct config_file::impl {
    std::vector<file_part> parts;  // a key of a later one wins
};

struct config_section::impl {
    std::string name, node;
    std::shared_ptr<const void> file;  // keeps the tables alive
    std::vector<table_part> parts;
};

namespace {

const config_key& known_key(std::string_view table, std::string_view name,
                            std::initializer_list<config_type> types) {
    const auto* key = find_config_key(table, name);
    if (!key || std::ranges::find(types, key->type) == types.end())
        throw std::logic_error(fmt::format("[{}] {} is no key of this type", table, name));
    return *key;
}

/// What the last of the tables that has the key says, or else its default, by `read`.
template <class Read>
auto value_of(const std::vector<table_part>& parts, const config_key& key, Read read) {
    for (auto part = parts.rbegin(); part != parts.rend(); ++part)
        if (const auto* node = part->table->get(key.name))
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

/// What to do about an error of the parser.
std::string hint_after(const toml::parse_error& e, const std::filesystem::path& path) {
    if (e.description().find("redefine") == std::string_view::npos) return {};
    return fmt::format(
        "the file has that table or key already: set the key there, or write the block into a "
        "file of its own, {}.d/NAME.conf",
        path.string());
}

result<file_part> read_part(const std::filesystem::path& path) {
    constexpr std::size_t most = 1 << 20;
    BANYAN_TRY(const auto text, read_file(path, most));
    file_part out{path.string(), {}};
    try {
        out.table = toml::parse(text, path.string());
    } catch (const toml::parse_error& e) {
        return fail(errc::invalid_input,
                    fmt::format("{}:{}:{}: {}", path.string(), e.source().begin.line, e.source().begin.column,
                                e.description()),
                    hint_after(e, path));
    }
    BANYAN_CHECK(only_known_tables(out.table, out.path));
    return out;
}

}  // namespace

result<config_file> config_file::load(const std::filesystem::path& path) {
    auto loaded = std::make_shared<impl>();
    BANYAN_TRY(const auto files, config_parts(path));
    for (const auto& file : files) {
        BANYAN_TRY(auto part, read_part(file));
        loaded->parts.push_back(std::move(part));
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
    found->name = name;
    found->node = node;
    found->file = impl_;
    for (const auto& part : impl_->parts)
        if (const auto* table = part.table.get_as<toml::table>(name))
            found->parts.push_back({part.path, table});
    config_section out;
    out.impl_ = std::move(found);
    return out;
}

void config_section::field(std::string_view name, std::string& into) const {
    using enum config_type;
    const auto& key = known_key(impl_->name, name, {text, node_text, path, choice});
    into = value_of(impl_->parts, key, text_of);
    const auto& node = impl_->node;
    if (node.empty() || (key.type != path && key.type != node_text)) return;
    for (auto at = into.find("%n"); at != std::string::npos; at = into.find("%n", at + node.size()))
        into.replace(at, 2, node);
}

void config_section::field(std::string_view name, bool& into) const {
    into = value_of(impl_->parts, known_key(impl_->name, name, {config_type::flag}), flag_of);
}

void config_section::field(std::string_view name, std::chrono::milliseconds& into) const {
    into = value_of(impl_->parts, known_key(impl_->name, name, {config_type::duration}), duration_of);
}

void config_section::field(std::string_view name, std::vector<std::string>& into) const {
    into = value_of(impl_->parts, known_key(impl_->name, name, {config_type::list}), list_of);
}

std::uint64_t config_section::unsigned_value(std::string_view name) const {
    using enum config_type;
    return value_of(impl_->parts, known_key(impl_->name, name, {number, size}), number_of);
}

std::string config_section::text(std::string_view key) const {
    std::string out;
    field(key, out);
    return out;
}

result<void> config_section::check() const {
    std::vector<std::string> known;
    for (const auto& key : config_keys())
        if (key.table == impl_->name) known.emplace_back(key.name);
    for (const auto& part : impl_->parts)
        for (const auto& [written, node] : *part.table) {
            const std::string name(written.str());
            const auto where = fmt::format("{}:{}: [{}]", part.path, node.source().begin.line, impl_->name);
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

}  // namespace banyan
