// SPDX-License-Identifier: BSD-3-Clause
//
// What is missing from the fabric now, compared with the accepted one: each missing thing once, named by its
// ends, and a dead switch or host instead of all its links.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "fault/fabric/known_fabric.hpp"
#include "fault/incident/incident.hpp"
#include "fault/sources/ufm_log.hpp"

namespace banyan::fault {

inline constexpr std::string_view link_slow = "link-slow";

struct fabric_fault {
    struct object object;
    std::string reason;  ///< fabric-link, host-link, link-slow, fabric-switch, host-lost
    std::string cause;
    severity how_bad = severity::warning;
    std::vector<std::string> covers;  ///< keys of what went with it: a dead switch's links
    std::string key() const;
};

/// What a dump is read with: [topo] names and site of banyan.conf.
struct fabric_files {
    std::string names, site;
};

/// Names an object of the fabric for ever: GUIDs and ports, never names.
std::string key_of(const object& o);

/// The accepted fabric; faults are what it has and the present one lacks. It grows by what a look finds new,
/// and is kept in a file: a snapshot has the faults of its hour, too.
class fabric_memory {
  public:
    fabric_memory();
    ~fabric_memory();

    /// Takes what the file of an earlier controller says; where there is none, the snapshot. Such a file that
    /// cannot be read is said in `warning`, and stays as it is.
    result<void> load(const std::string& accepted, const std::string& snapshot, std::string& warning);
    /// `dump`: ibnetdiscover's output. The first one is accepted when nothing else was; later ones are
    /// compared, and what is new in them is accepted. `for_good`: what of these is not there is not missing.
    result<std::vector<fabric_fault>> compare(std::string_view dump, const std::vector<object>& for_good = {},
                                              const fabric_files& beside = {});
    /// What the last look saw.
    std::shared_ptr<const known_fabric> seen() const;
    /// Writes the file, where it is not as it should be.
    result<void> save();
    /// The accepted links that have one of these ports, as they would be told if they were missing; each
    /// once. Ports that the accepted fabric does not know give nothing.
    std::vector<fabric_fault> links_at(const std::vector<named_port>& ports) const;

  private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace banyan::fault
