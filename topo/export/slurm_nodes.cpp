// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/slurm_nodes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::topo {
namespace {

class conf_reader {
  public:
    conf_reader(const std::string& name) : name_(name) {}

    /// One whole line, continuations joined; `number` is where it began.
    result<void> take(std::string_view line, std::size_t number) {
        line = trim(line);
        if (same_word(line.substr(0, 7), "include") && line.size() > 7 && (line[7] == ' ' || line[7] == '\t'))
            out_.includes = true;
        conf_pairs words(line);
        const auto first = words.next();
        if (!first || !same_word(first->first, "NodeName") || same_word(first->second, "DEFAULT")) return {};
        const auto names = expand_slurm_hostlist(first->second);
        if (!names) return bad(number, names.error());
        out_.names.insert(out_.names.end(), names->begin(), names->end());
        if (out_.names.size() > max_slurm_nodes)
            return bad(number, {errc::invalid_input, fmt::format("more than {} nodes", max_slurm_nodes), ""});
        while (const auto word = words.next()) {
            if (!same_word(word->first, "NodeHostname")) continue;
            const auto hosts = expand_slurm_hostlist(word->second);
            if (!hosts) return bad(number, hosts.error());
            // One host for many nodes is a test cluster on one machine: it tells nothing about a fabric.
            if (hosts->size() != names->size()) continue;
            for (std::size_t i = 0; i < names->size(); ++i)
                out_.by_hostname.emplace((*hosts)[i], (*names)[i]);
        }
        return {};
    }

    slurm_nodes finish() {
        std::sort(out_.names.begin(), out_.names.end());
        out_.names.erase(std::unique(out_.names.begin(), out_.names.end()), out_.names.end());
        return std::move(out_);
    }

  private:
    std::unexpected<error> bad(std::size_t number, const error& e) const {
        return fail(e.code, fmt::format("{}:{}: {}", name_, number, e.what), "correct the NodeName line");
    }
    std::string name_;
    slurm_nodes out_;
};

}  // namespace

result<slurm_nodes> nodes_of_hostlist(std::string_view hostlist) {
    slurm_nodes out;
    BANYAN_TRY(out.names, expand_slurm_hostlist(hostlist));
    std::sort(out.names.begin(), out.names.end());
    out.names.erase(std::unique(out.names.begin(), out.names.end()), out.names.end());
    return out;
}

result<slurm_nodes> nodes_of_slurm_conf(std::string_view text, const std::string& name) {
    conf_reader reader(name);
    for (conf_lines lines(text); lines.next();) BANYAN_CHECK(reader.take(lines.line(), lines.number()));
    auto out = reader.finish();
    if (out.names.empty())
        return fail(errc::invalid_input, fmt::format("{} declares no node", name),
                    out.includes ? "Include lines are not followed: name the file that has the NodeName lines"
                                 : "expected lines such as NodeName=n[01-16] CPUs=64");
    return out;
}

}  // namespace banyan::topo
