// SPDX-License-Identifier: BSD-3-Clause
//
// Logs of programs on a node: NVIDIA's fabric manager, which root runs, and NCCL, whose warnings are a job's
// own text. A line is taken from its first byte on. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fault/catalog/symptom.hpp"
#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

struct fabric_manager_event {
    kernel_fault fault;  ///< as the kernel's SXid line of the same event
    std::string time;    ///< as printed
};

/// "[Jul 09 2024 18:14:07] [ERROR] [tid 12727] detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch
/// pci bus id 00000000:86:00.0 physical id 3 port 61". `form`, where given, is set when the line has the form
/// of this log at all.
std::optional<fabric_manager_event> fabric_manager_line(std::string_view text, bool* form = nullptr);

struct nccl_event {
    catalog::symptom what = catalog::symptom::nccl_warning;
    std::string host, time;  ///< as printed; time is empty when there is none
    std::uint32_t pid = 0;
    std::string hca;                      ///< "mlx5_3", empty when none is named
    std::optional<std::uint64_t> status;  ///< of a completion
};

/// "gpu7:123:456 [0] transport/net_ib.cc:2244 NCCL WARN NET/IB: Got completion from peer ...". Whoever runs a
/// job writes there what he likes: it accuses nobody but the job.
std::optional<nccl_event> nccl_line(std::string_view text, bool* form = nullptr);

}  // namespace banyan::fault
