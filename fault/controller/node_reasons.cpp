// SPDX-License-Identifier: BSD-3-Clause
#include "fault/controller/node_reasons.hpp"

namespace banyan::fault {

bool is_slurms_own(const node_status& node) {
    return !node.drained && (node.reason == "Not responding" || node.reason == "Node unexpectedly rebooted");
}

result<bool> keep_from_sweep(cluster& slurm, const std::string& node, const std::string& reason) {
    BANYAN_TRY(const auto status, slurm.node(node));
    if (!status.drained || !status.reason.starts_with(sweep_reason_prefix)) return false;
    BANYAN_CHECK(slurm.set_drain(node, reason));
    return true;
}

}  // namespace banyan::fault
