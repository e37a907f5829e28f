// SPDX-License-Identifier: GPL-2.0-or-later
//
// The fabric snapshot as slurmctld sees it: loaded once, looked at again when the file changes, joined with
// the node table. A snapshot that is missing, damaged or stale is said once, and placement stays off until a
// good one appears.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <banyan/topo/avoid.hpp>
#include <banyan/topo/fabric.hpp>

#include "slurmctld-plugin/ctld_tables.hpp"
#include "slurmctld-plugin/fabric/host_map.hpp"

namespace banyan::slurm {

/// Called under slurmctld's job lock only, like everything in this folder; holds no lock of its own.
class fabric_cache {
  public:
    struct view {
        const topo::fabric& fabric;
        const host_map& map;
        /// By host: what the comments of their nodes say, 0 to 1, a second old at most.
        const std::vector<float>& risk;
        /// By host, as topo::candidates::kind: the GPUs of their nodes, those first that slurm.conf has
        /// first.
        const std::vector<std::uint32_t>& kind;
    };

    /// Null when there is no usable snapshot. The view is good until the next call.
    const view* get(const ctld_tables& ctld);

    static fabric_cache& instance();

  private:
    /// What changes with a file, in ns since the epoch; all zero when there is none.
    struct file_state {
        std::int64_t modified = 0, changed = 0;
        std::uint64_t inode = 0;
        bool operator==(const file_state&) const = default;
    };

    void read_config();
    void load(std::int64_t now);
    /// Marks the links that new jobs are kept off. What cannot be read changes nothing.
    void read_avoided();
    void mark_avoided();
    void join(const ctld_tables& ctld);
    void read_nodes(const ctld_tables& ctld);
    bool joined_with(const ctld_tables& ctld) const;

    std::string path_, avoid_path_;
    std::int64_t max_age_s_ = 0;
    std::int64_t checked_at_ = 0;
    file_state avoid_seen_;
    std::vector<topo::avoided_link> avoided_;  // as the last list said that made sense
    file_state seen_;                          // of the file that was loaded, or could not be
    bool configured_ = false;
    bool loaded_ = false;  // fabric_ holds the file's content
    bool usable_ = false;  // and it is not too old
    topo::fabric fabric_;
    host_map map_;
    std::vector<float> risk_;
    std::vector<std::uint32_t> kind_;
    view view_{fabric_, map_, risk_, kind_};
};

}  // namespace banyan::slurm
