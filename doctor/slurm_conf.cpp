// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/slurm_conf.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>

#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::doctor {
namespace {

constexpr std::size_t most_text = 16u << 20;
constexpr int most_depth = 8;
constexpr const char* usual_places[] = {"/etc/slurm/slurm.conf", "/usr/local/etc/slurm.conf",
                                        "/run/slurm/conf/slurm.conf"};
// What scontrol would print; in slurm.conf the case of keys does not count.
constexpr const char* known_keys[] = {
    "SelectType",  "SelectTypeParameters", "JobSubmitPlugins", "PrologFlags",     "AuthType",
    "ClusterName", "SlurmctldParameters",  "PluginDir",        "PlugStackConfig", "SlurmUser",
    "JobRequeue"};

using pair = std::pair<std::string, std::string>;

bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

std::string_view without_comment(std::string_view line) {
    std::size_t escapes = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (line[i] == '#' && escapes % 2 == 0) return line.substr(0, i);
        escapes = line[i] == '\\' ? escapes + 1 : 0;
    }
    return line;
}

/// Lines with their continuations.
std::vector<std::string> whole_lines(std::string_view text) {
    std::vector<std::string> out;
    std::string whole;
    for (const auto raw : split(text, '\n')) {
        auto line = without_comment(raw);
        const auto end = trim(line);
        const auto last = end.find_last_not_of('\\');
        const auto escapes = end.size() - (last == std::string_view::npos ? 0 : last + 1);
        if (escapes % 2 == 1) {
            whole += line.substr(0, line.find_last_of('\\'));
            continue;
        }
        whole += line;
        out.push_back(std::move(whole));
        whole.clear();
    }
    if (!whole.empty()) out.push_back(std::move(whole));
    return out;
}

/// "Key=value" and "Key = "a b"" of a line; keys in lower case.
std::vector<pair> pairs_of(std::string_view line) {
    std::vector<pair> out;
    for (std::size_t equals; (equals = line.find('=')) != std::string_view::npos;) {
        auto key = trim(line.substr(0, equals));
        while (!key.empty() && std::string_view("-*+/").contains(key.back())) key.remove_suffix(1);
        key = trim(key);
        key = key.substr(key.find_last_of(" \t") + 1);
        line.remove_prefix(equals + 1);
        while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
        const bool quoted = line.starts_with('"');
        if (quoted) line.remove_prefix(1);
        const auto end =
            std::find_if(line.begin(), line.end(), [&](char c) { return quoted ? c == '"' : is_space(c); });
        const auto size = static_cast<std::size_t>(end - line.begin());
        out.emplace_back(lower_case(key), line.substr(0, size));
        line.remove_prefix(std::min(line.size(), size + (quoted ? 1 : 0)));
    }
    return out;
}

class reader {
  public:
    explicit reader(const std::filesystem::path& file) : folder_(file.parent_path()) { out_.path = file; }

    result<void> read(const std::filesystem::path& file, int depth) {
        if (depth > most_depth)
            return fail(errc::invalid_input, fmt::format("{} includes itself", file.string()));
        BANYAN_TRY(const auto text, read_file(file, most_text));
        for (const auto& line : whole_lines(text)) {
            const auto trimmed = trim(line);
            if (trimmed.size() > 8 && lower_case(trimmed.substr(0, 7)) == "include" && is_space(trimmed[7]))
                BANYAN_CHECK(read(included(trim(trimmed.substr(8))), depth + 1));
            else
                take(pairs_of(line));
        }
        return {};
    }

    slurm_file done() && {
        const auto set = [&](const char* key, std::string value) {
            out_.config.emplace(key, std::move(value));
        };
        out_.own_plugstack = out_.config.contains("PlugStackConfig");
        set("PlugStackConfig", folder_ / "plugstack.conf");
        set("AuthType", "auth/munge");
        set("JobRequeue", "1");
        set("SlurmUser", "root");
        set("PluginDir", BANYAN_SLURM_PLUGIN_DIR);
        return std::move(out_);
    }

  private:
    /// %c is the name of the cluster, which stands before.
    std::filesystem::path included(std::string_view name) const {
        std::string whole(name);
        for (std::size_t at; (at = whole.find("%c")) != std::string::npos;)
            whole.replace(at, 2, lower_case(value_of(out_.config, "ClusterName")));
        return std::filesystem::path(whole).is_absolute() ? std::filesystem::path(whole) : folder_ / whole;
    }

    void take(const std::vector<pair>& pairs) {
        if (pairs.empty()) return;
        if (pairs.front().first == "nodename") return add_nodes(pairs);
        for (const auto& [key, value] : pairs) {
            for (const auto* known : known_keys)
                if (key == lower_case(known)) out_.config.insert_or_assign(known, value);
            if (key == "slurmctldhost")
                out_.config.emplace(fmt::format("SlurmctldHost[{}]", controllers_++), value);
        }
    }

    void add_nodes(const std::vector<pair>& pairs) {
        slurm_node shape = usual_;
        std::string hosts, addresses;
        for (const auto& [key, value] : pairs) {
            if (key == "realmemory") shape.real_memory = parse_number(value).value_or(0);
            if (key == "memspeclimit") shape.mem_spec_limit = parse_number(value).value_or(0);
            if (key == "nodehostname") hosts = value;
            if (key == "nodeaddr") addresses = value;
            if (key == "state") shape.state = value;
        }
        const auto& names = pairs.front().second;
        if (names == "DEFAULT") {
            usual_ = shape;
            return;
        }
        const auto list = [](const std::string& text) {
            auto expanded = expand_hostlist(text);
            return expanded ? std::move(*expanded) : std::vector<std::string>{};
        };
        // One address may stand for all.
        const auto nth = [](const std::vector<std::string>& from, std::size_t i,
                            const std::string& otherwise) {
            return from.size() == 1 ? from.front() : i < from.size() ? from[i] : otherwise;
        };
        const auto all = list(names), of_hosts = list(hosts), of_addresses = list(addresses);
        for (std::size_t i = 0; i < all.size(); ++i) {
            shape.name = all[i];
            shape.host = nth(of_hosts, i, all[i]);
            shape.address = nth(of_addresses, i, shape.host);
            out_.nodes.push_back(shape);
        }
    }

    std::filesystem::path folder_;
    slurm_file out_;
    slurm_node usual_;
    int controllers_ = 0;
};

}  // namespace

std::optional<std::filesystem::path> find_slurm_conf() {
    if (const char* set = std::getenv("SLURM_CONF"); set && *set) return set;
    std::error_code ignored;
    for (const auto* place : usual_places)
        if (std::filesystem::exists(place, ignored)) return place;
    return {};
}

result<slurm_file> read_slurm_conf(const std::filesystem::path& file) {
    reader r(file);
    BANYAN_CHECK(r.read(file, 0));
    return std::move(r).done();
}

}  // namespace banyan::doctor
