// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include <banyan/topo/site.hpp>
#include <fmt/format.h>
#include <toml++/toml.h>

#include "common/text.hpp"
#include "topo/readers/disarm.hpp"

namespace banyan::topo {
namespace {

/// Reads the keys of one table; the first thing that is wrong is kept.
class table_reader {
  public:
    table_reader(const toml::table& t, std::string where) : table_(t), where_(std::move(where)) {}

    template <class Value>
    Value get(std::string_view key, Value fallback) {
        asked_.push_back(std::string(key));
        const auto* node = table_.get(key);
        if (!node) return fallback;
        if (const auto value = node->value<Value>()) return *value;
        wrong(*node, fmt::format("{} has the wrong type", key));
        return fallback;
    }
    std::vector<std::string> hosts(std::string_view key) {
        const auto text = get<std::string>(key, "");
        if (text.empty()) return {};
        auto list = expand_hostlist(text);
        if (list) return std::move(*list);
        wrong(*table_.get(key), list.error().what);
        return {};
    }
    /// Nothing where the key is not there.
    std::optional<std::vector<std::string>> strings(std::string_view key) {
        asked_.push_back(std::string(key));
        const auto* node = table_.get(key);
        if (!node) return std::nullopt;
        std::vector<std::string> out;
        const auto* array = node->as_array();
        if (!array) {
            wrong(*node, fmt::format("{} is not a list of strings", key));
            return out;
        }
        for (const auto& item : *array) {
            if (const auto text = item.value_exact<std::string>())
                out.push_back(*text);
            else
                wrong(item, fmt::format("{} is not a list of strings", key));
        }
        return out;
    }
    result<void> finish() {
        for (const auto& [key, node] : table_) {
            const std::string name(key.str());
            if (std::find(asked_.begin(), asked_.end(), name) != asked_.end()) continue;
            const auto close = nearest(name, asked_);
            return fail(errc::invalid_input,
                        fmt::format("{}:{}: unknown key {}", where_, node.source().begin.line, name),
                        close.empty() ? "" : fmt::format("did you mean {}?", close));
        }
        if (first_) return std::unexpected(*first_);
        return {};
    }
    void wrong(const toml::node& node, const std::string& what) {
        if (!first_)
            first_ = error{
                errc::invalid_input, fmt::format("{}:{}: {}", where_, node.source().begin.line, what), {}};
    }

  private:
    const toml::table& table_;
    std::string where_;
    std::vector<std::string> asked_;
    std::optional<error> first_;
};

/// Calls `take(table_reader)` for each [[key]].
template <class Take>
result<void> each_table(const toml::table& file, std::string_view key, const std::string& name, Take take) {
    const auto* node = file.get(key);
    if (!node) return {};
    const auto* array = node->as_array();
    if (!array)
        return fail(errc::invalid_input, fmt::format("{}:{}: {} is not a list of tables: write [[{}]]", name,
                                                     node->source().begin.line, key, key));
    for (const auto& item : *array) {
        const auto* table = item.as_table();
        if (!table)
            return fail(errc::invalid_input, fmt::format("{}:{}: {} is not a list of tables: write [[{}]]",
                                                         name, item.source().begin.line, key, key));
        table_reader r(*table, name);
        take(r);
        BANYAN_CHECK(r.finish());
    }
    return {};
}

template <class Take>
result<void> one_table(const toml::table& file, std::string_view key, const std::string& name, Take take) {
    const auto* node = file.get(key);
    if (!node) return {};
    const auto* table = node->as_table();
    if (!table)
        return fail(errc::invalid_input,
                    fmt::format("{}:{}: {} is not a table", name, node->source().begin.line, key));
    table_reader r(*table, name);
    take(r);
    return r.finish();
}

result<void> only_known_tables(const toml::table& file, const std::string& name) {
    const std::vector<std::string> known{"compute",       "management", "storage", "failure_domain",
                                         "nvlink_domain", "nvlink",     "slurm",   "wan"};
    for (const auto& [key, node] : file) {
        const std::string word(key.str());
        if (std::find(known.begin(), known.end(), word) != known.end()) continue;
        const auto close = nearest(word, known);
        return fail(errc::invalid_input,
                    fmt::format("{}:{}: unknown table {}", name, node.source().begin.line, word),
                    close.empty() ? "" : fmt::format("did you mean {}?", close));
    }
    return {};
}

named_hosts take_named(table_reader& t, bool with_kind) {
    named_hosts out;
    if (with_kind) out.kind = t.get<std::string>("kind", "");
    out.name = t.get<std::string>("name", "");
    disarm(out.kind);
    disarm(out.name);
    out.hosts = t.hosts("hosts");
    return out;
}

}  // namespace

result<site_description> read_site(std::string_view text, const std::string& name) {
    toml::table file;
    try {
        file = toml::parse(text, name);
    } catch (const toml::parse_error& e) {
        return fail(errc::invalid_input, fmt::format("{}:{}:{}: {}", name, e.source().begin.line,
                                                     e.source().begin.column, e.description()));
    }
    site_description out;
    BANYAN_CHECK(only_known_tables(file, name));
    BANYAN_CHECK(one_table(file, "compute", name, [&](auto& t) { out.compute_hosts = t.hosts("hosts"); }));
    BANYAN_CHECK(
        one_table(file, "management", name, [&](auto& t) { out.management_hosts = t.hosts("hosts"); }));
    BANYAN_CHECK(one_table(file, "storage", name, [&](auto& t) {
        out.storage_hosts = t.hosts("hosts");
        out.storage_devices = t.strings("devices");
    }));
    BANYAN_CHECK(each_table(file, "failure_domain", name,
                            [&](auto& t) { out.failure_domains.push_back(take_named(t, true)); }));
    BANYAN_CHECK(each_table(file, "nvlink_domain", name,
                            [&](auto& t) { out.nvlink_domains.push_back(take_named(t, false)); }));
    BANYAN_CHECK(one_table(file, "nvlink", name, [&](auto& t) {
        out.nvlink_domain_file = t.template get<std::string>("domains", "");
    }));
    BANYAN_CHECK(one_table(file, "slurm", name, [&](auto& t) {
        const auto blocks = t.template get<std::string>("blocks", "leaf-group");
        out.blocks_are_nvlink_domains = blocks == "nvlink-domain";
        if (blocks != "leaf-group" && !out.blocks_are_nvlink_domains)
            t.wrong(*file.get("slurm"),
                    fmt::format("blocks = \"{}\", expected \"leaf-group\" or \"nvlink-domain\"", blocks));
    }));
    std::optional<error> wrong_wan;
    BANYAN_CHECK(each_table(file, "wan", name, [&](auto& t) {
        wan_description w;
        for (const auto& site : t.strings("sites").value_or(std::vector<std::string>())) {
            auto hosts = expand_hostlist(site);
            if (!hosts && !wrong_wan) wrong_wan = hosts.error();
            (w.a.empty() ? w.a : w.b) = hosts ? std::move(*hosts) : std::vector<std::string>{};
        }
        w.gbps = t.template get<double>("gbps", 0);
        const auto wrong = [&](std::string what) {
            if (!wrong_wan) wrong_wan = error{errc::invalid_input, fmt::format("{}: {}", name, what), {}};
        };
        if (w.a.empty() || w.b.empty()) wrong("[[wan]] needs sites = [\"HOSTS\", \"HOSTS\"]");
        if (!(w.gbps > 0)) wrong("[[wan]] needs gbps, a number above 0");
        for (const auto& host : w.a)
            if (std::ranges::find(w.b, host) != w.b.end())
                wrong(fmt::format("[[wan]] has {} at both ends", host));
        out.wan.push_back(std::move(w));
    }));
    if (wrong_wan) return std::unexpected(*wrong_wan);
    return out;
}

}  // namespace banyan::topo
