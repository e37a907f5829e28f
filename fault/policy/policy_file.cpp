// SPDX-License-Identifier: BSD-3-Clause
#include "fault/policy/policy_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <toml++/toml.h>

#include "common/crc32c.hpp"
#include "common/fd.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "fault/policy/rule_reader.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t most_bytes = 1 << 20;
constexpr std::size_t most_rules = 4096;

constexpr std::string_view shipped_text =
#include "policy_text.inc"
    ;

std::vector<rule> read_rules(const toml::table& file, rule_reader& in) {
    for (const auto& [key, node] : file)
        if (key.str() != "rule")
            in.wrong(node, fmt::format("there is no \"{}\" in a policy", printable(key.str())),
                     "a policy is a list of [[rule]]");
    const auto* node = file.get("rule");
    const auto* list = node ? node->as_array() : nullptr;
    std::vector<rule> out;
    if (node && (!list || !(list->empty() || list->is_array_of_tables()))) {
        in.wrong(*node, "rule is no list of tables", "a rule begins with [[rule]]");
        return out;
    }
    if (!list || list->empty()) {
        in.wrong(file, "there is no rule",
                 "without any, nothing would ever be done: see etc/banyan-policy.toml");
        return out;
    }
    if (list->size() > most_rules) {
        in.wrong(*list->get(most_rules), fmt::format("there are {} rules", list->size()),
                 fmt::format("at most {} are possible", most_rules));
        return out;
    }
    for (const auto& one : *list) out.push_back(in.read(*one.as_table()));
    return out;
}

}  // namespace

std::string policy_problem::text(const std::string& file) const {
    return fmt::format("{}:{}:{}: {}{}{}{}", file, line, column, warning ? "warning: " : "", what,
                       hint.empty() ? "" : "; ", hint);
}

policy_reading parse_policy(const std::string& source, std::string_view text) {
    policy_reading out;
    toml::table file;
    try {
        file = toml::parse(text, source);
    } catch (const toml::parse_error& e) {
        out.problems.push_back({false, e.source().begin.line, e.source().begin.column,
                                printable(e.description()), "it is not TOML"});
        return out;
    }
    rule_reader in(out.problems);
    auto rules = read_rules(file, in);
    if (out.problems.empty())
        out.rules.emplace(source, fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text)))),
                          std::move(rules));
    return out;
}

result<std::string> read_policy_text(const std::filesystem::path& path) {
    if (path == "-") return read_file("/proc/self/fd/0", most_bytes);
    // Of a FIFO nobody may ever write to, the open alone would wait for ever.
    const unique_fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (!fd) {
        const int err = errno;
        return fail_errno(fmt::format("cannot open the policy {}", path.string()), err,
                          err == EACCES ? hint_for(err) : "see [fault] policy in banyan.conf");
    }
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0)
        return fail_errno(fmt::format("cannot look at {}", path.string()), errno);
    if (!S_ISREG(st.st_mode))
        return fail(errc::invalid_input, fmt::format("the policy {} is {}, expected a file", path.string(),
                                                     S_ISDIR(st.st_mode)    ? "a directory"
                                                     : S_ISFIFO(st.st_mode) ? "a FIFO"
                                                                            : "a device or socket"));
    return read_file(path, most_bytes);
}

result<policy> load_policy(const std::filesystem::path& path) {
    if (path.empty()) return shipped_policy();
    BANYAN_TRY(const auto text, read_policy_text(path));
    auto read = parse_policy(path.string(), text);
    if (read.rules) return std::move(*read.rules);
    const auto& first = read.problems.front();
    auto what = first.text(path.string());
    if (read.problems.size() > 1) what += fmt::format(" (and {} more errors)", read.problems.size() - 1);
    return fail(errc::invalid_input, std::move(what), "banyan-fault policy check tells all that is wrong");
}

std::string_view shipped_policy_text() { return shipped_text; }

const policy& shipped_policy() {
    static const policy shipped = parse_policy(shipped_policy_name, shipped_text).rules.value();
    return shipped;
}

}  // namespace banyan::fault
