// SPDX-License-Identifier: BSD-3-Clause
//
// What is missing from the fabric now, compared with the accepted one: each missing thing once, named by its
// ends, and a dead switch or host instead of all its links. The only place of fault/ that looks into topo's
// model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "fault/incident/incident.hpp"
#include "fault/sources/ufm_log.hpp"

namespace banyan::fault {

struct fabric_fault {
    struct object object;
    std::string reason;  ///< fabric-link, host-link, link-slow, fabric-switch, host-lost
    std::string cause;
    severity how_bad = severity::warning;
    std::vector<std::string> covers;  ///< keys of what went with it: a dead switch's links
    std::string key() const;
};

/// Names an object of the fabric for ever: GUIDs and ports, never names.
std::string key_of(const object& o);

/// The accepted fabric; faults are what it has and the present one lacks.
class fabric_memory {
  public:
    fabric_memory();
    ~fabric_memory();

    /// Takes the snapshot as accepted.
    result<void> load_snapshot(const std::string& path);
    /// `dump`: ibnetdiscover's output. The first one is accepted when there is no snapshot; later ones are
    /// compared, and accepted when nothing is missing (so that what was added counts from then on).
    result<std::vector<fabric_fault>> compare(std::string_view dump);
    /// The accepted links that have one of these ports, as they would be told if they were missing; each
    /// once. Ports that the accepted fabric does not know give nothing.
    std::vector<fabric_fault> links_at(const std::vector<named_port>& ports) const;

  private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace banyan::fault
