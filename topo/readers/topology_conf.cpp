// SPDX-License-Identifier: BSD-3-Clause
//
// topology.conf(5) of Slurm, for topology/tree and topology/block; topograph writes it too.
#include <fmt/format.h>

#include "common/text.hpp"
#include "topo/readers/block_sizes.hpp"
#include "topo/readers/csv.hpp"
#include "topo/readers/name_tree.hpp"
#include "topo/readers/records.hpp"
#include "topo/readers/slurm_conf.hpp"

namespace banyan::topo {
namespace {

bool begins_line(std::string_view key) {
    return same_word(key, "SwitchName") || same_word(key, "BlockName") || same_word(key, "BlockSizes");
}

class topology_conf_reader {
  public:
    explicit topology_conf_reader(dump& out) : out_(out), tree_(out) {}

    void take(std::uint32_t number, std::string_view line) {
        if (trim(line).empty()) return;
        std::string_view name, nodes, below;
        bool block = false, named = false;
        conf_pairs words(line);
        std::optional<conf_pairs::pair> word;
        bool any = false;
        while ((word = words.next())) {
            any = true;
            const auto& [key, value] = *word;
            if (same_word(key, "SwitchName"))
                name = value, named = true;
            else if (same_word(key, "BlockName"))
                name = value, named = block = true;
            else if (same_word(key, "Nodes"))
                nodes = value;
            else if (same_word(key, "Switches"))
                below = value;
            else if (same_word(key, "BlockSizes"))
                sizes_.take(out_, number, value);
            else if (!same_word(key, "LinkSpeed"))
                complain(out_, number, 1,
                         fmt::format("\"{}\" is no key of topology.conf; it is skipped", key.substr(0, 40)));
        }
        if (!any)
            return complain(out_, number, 1,
                            fmt::format("not a line of topology.conf: \"{}\"", trim(line).substr(0, 40)));
        if (!named) return;
        (block ? blocks_ : switches_) = true;
        tree_.add(number, name, nodes, below);
    }

    result<void> finish() {
        if (blocks_ && switches_)
            return fail(errc::invalid_input, "the file has both switches and blocks",
                        "give it with the lines of the topology plugin alone that Slurm uses");
        out_.blocks = blocks_;
        if (blocks_) tree_.join_in_order(sizes_.spans());
        return tree_.finish();
    }

  private:
    dump& out_;
    name_tree tree_;
    block_sizes sizes_;
    bool blocks_ = false, switches_ = false;
};

}  // namespace

bool is_topology_conf(std::string_view text) {
    return any_early_line(text, [](std::string_view line) {
        const auto first = conf_pairs(line).next();
        return first && begins_line(first->first);
    });
}

result<void> read_topology_conf(std::string_view text, dump& out) {
    topology_conf_reader r(out);
    for (conf_lines lines(text); lines.next();) r.take(lines.number(), lines.line());
    return r.finish();
}

}  // namespace banyan::topo
