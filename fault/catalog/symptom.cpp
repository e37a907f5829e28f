// SPDX-License-Identifier: BSD-3-Clause
#include "fault/catalog/symptom.hpp"

#include <algorithm>
#include <array>

namespace banyan::fault::catalog {
namespace {

using enum symptom;

// What a user may bring about by ordinary means (memory that runs out, a process that hangs in a file system
// of his own) asks for nothing, or accuses the job; none of it takes a node out.
constexpr auto symptom_rows = std::to_array<symptom_row>({
    {gpu_init, "gpu-init", part::gpu, asks::look, "gpu-alert", "the driver cannot initialise the GPU"},
    {gpu_driver, "gpu-driver", part::gpu, asks::look, "gpu-alert", "the GPU driver gave up"},
    {gpu_count, "gpu-probe", part::gpu, asks::look, "gpu-alert", "the driver found a GPU that it cannot use"},
    {gpu_memory, "gpu-memory", part::gpu, asks::look, "gpu-alert",
     "memory errors of the GPU that were not corrected"},
    {gpu_slow, "gpu-slow", part::gpu, asks::look, "gpu-alert", "the GPU's hardware takes its clocks down"},
    {gpu_missing, "gpu-missing", part::gpu, asks::look, "gpu-alert",
     "the driver does not show the GPU any more"},
    {hca_health, "hca-health", part::hca, asks::drain, "hca-health", "the HCA's firmware failed"},
    {hca_command, "hca-command", part::hca, asks::drain, "hca-health", "the HCA's firmware does not answer"},
    {hca_power, "hca-power", part::hca, asks::look, "hca-alert", "the HCA's slot gives too little power"},
    {hca_temperature, "hca-temperature", part::hca, asks::look, "hca-alert", "the HCA or its module is hot"},
    {hca_module, "hca-module", part::hca, asks::look, "hca-alert", "the HCA's cable or module is faulty"},
    {hca_cable, "hca-cable", part::hca, asks::look, "hca-alert", "the HCA's cable is unplugged"},
    {hca_transmit, "hca-transmit", part::hca, asks::look, "hca-alert", "the HCA does not transmit"},
    {hca_port_down, "hca-port-down", part::hca, asks::nothing, "hca-alert", "the HCA's port went down"},
    {hca_errors, "hca-errors", part::hca, asks::look, "hca-alert",
     "a port of the HCA counts errors too fast"},
    {hca_port_up, "hca-port-up", part::hca, asks::nothing, "hca-alert", "the HCA's port is up again"},
    {pcie_corrected, "pcie-corrected", part::pcie, asks::nothing, "pcie", "PCIe errors that were corrected"},
    {pcie_nonfatal, "pcie-nonfatal", part::pcie, asks::look, "pcie", "a PCIe error lost a transaction"},
    {pcie_fatal, "pcie-fatal", part::pcie, asks::drain, "pcie", "the PCIe link is not reliable any more"},
    {pcie_lost, "pcie-lost", part::pcie, asks::drain, "pcie", "the PCIe device did not come back"},
    {pcie_slot, "pcie-slot", part::pcie, asks::look, "pcie", "a PCIe slot lost its link or card"},
    {pcie_switch, "pcie-switch", part::pcie, asks::drain, "pcie",
     "several cards below one PCIe switch were lost together"},
    {memory_corrected, "memory-corrected", part::memory, asks::nothing, "memory",
     "memory errors that were corrected"},
    {memory_uncorrected, "memory-uncorrected", part::memory, asks::drain, "memory",
     "memory errors that could not be corrected"},
    {memory_page, "memory-page", part::memory, asks::look, "memory", "a bad memory page was put out of use"},
    {cpu_corrected, "cpu-corrected", part::cpu, asks::nothing, "memory",
     "a machine check that was corrected"},
    {cpu_uncorrected, "cpu-uncorrected", part::cpu, asks::drain, "memory",
     "a machine check that could not be corrected"},
    {firmware_corrected, "firmware-corrected", part::memory, asks::nothing, "memory",
     "the firmware reports a corrected error"},
    {firmware_recoverable, "firmware-recoverable", part::memory, asks::look, "memory",
     "the firmware reports an error that is not corrected"},
    {firmware_fatal, "firmware-fatal", part::memory, asks::drain, "memory",
     "the firmware reports a fatal error"},
    {disk_timeout, "disk-timeout", part::disk, asks::look, "disk", "a disk answers late"},
    {disk_error, "disk-error", part::disk, asks::look, "disk", "a disk cannot read or write"},
    {disk_lost, "disk-lost", part::disk, asks::drain, "disk", "a disk is out of service"},
    {file_system_error, "file-system-error", part::file_system, asks::look, "file-system",
     "a file system is damaged"},
    {file_system_readonly, "file-system-readonly", part::file_system, asks::drain, "file-system",
     "a file system takes no more writes"},
    {file_system_server, "file-system-server", part::file_system, asks::nothing, "file-system",
     "a file server does not answer"},
    {hung_task, "hung-task", part::kernel, asks::nothing, "kernel",
     "a process waits in the kernel for minutes"},
    {soft_lockup, "soft-lockup", part::kernel, asks::look, "kernel", "a processor is stuck in the kernel"},
    {hard_lockup, "hard-lockup", part::kernel, asks::look, "kernel", "a processor takes no interrupts"},
    {stall, "rcu-stall", part::kernel, asks::look, "kernel", "a processor holds the kernel up"},
    {panic, "panic", part::kernel, asks::look, "kernel", "the kernel stopped"},
    {oops, "oops", part::kernel, asks::look, "kernel", "the kernel met a defect of its own"},
    {out_of_memory_job, "out-of-memory-job", part::job, asks::job, "job-memory",
     "a job used more memory than it was given"},
    {out_of_memory_node, "out-of-memory-node", part::job, asks::job, "job-memory",
     "the node's memory ran out"},
    {nccl_warning, "nccl-warning", part::job, asks::job, "job-nccl", "NCCL warned"},
    {nccl_network, "nccl-network", part::job, asks::job, "job-nccl", "NCCL could not use the network"},
    {nccl_completion, "nccl-completion", part::job, asks::job, "job-nccl",
     "NCCL's transfer to a peer failed"},
    {nccl_async_event, "nccl-async-event", part::job, asks::job, "job-nccl",
     "NCCL was told of an error of the HCA"},
    {nccl_cuda, "nccl-cuda", part::job, asks::job, "job-nccl", "NCCL met an error of CUDA"},
    {job_failed, "job-failed", part::job, asks::nothing, "job-failed", "a task of the job failed"},
    {job_crashed, "job-crashed", part::job, asks::job, "job-failed",
     "a task of the job was ended by a signal of its own making, or of bad hardware"},
    {job_given_up, "job-given-up", part::job, asks::nothing, "job-failed",
     "banyan-run does not start the job's step again"},
    {copy_damaged, "copy-damaged", part::job, asks::job, "checkpoint-damaged",
     "a copy in the node's memory is not what was saved"},
    {sent_damaged, "sent-damaged", part::job, asks::job, "checkpoint-damaged",
     "a copy that left the node was not what was saved"},
    {stored_damaged, "stored-damaged", part::job, asks::job, "checkpoint-damaged",
     "a file is not what was written"},
});

constexpr std::array<std::string_view, 9> parts{"gpu",  "hca",         "pcie",   "memory", "cpu",
                                                "disk", "file-system", "kernel", "job"};

}  // namespace

const symptom_row* find_symptom(std::uint32_t code) {
    const auto it = std::ranges::find(symptom_rows, code,
                                      [](const auto& row) { return static_cast<std::uint32_t>(row.code); });
    return it == symptom_rows.end() ? nullptr : it;
}

bool is_told_of_a_job(std::uint32_t code) {
    const auto s = static_cast<symptom>(code);
    return is_a_jobs_end(code) || s == copy_damaged || s == sent_damaged || s == stored_damaged;
}

bool is_a_jobs_end(std::uint32_t code) {
    const auto s = static_cast<symptom>(code);
    return s == job_failed || s == job_crashed || s == job_given_up;
}

std::span<const symptom_row> symptoms() { return symptom_rows; }

std::string_view name_of(part p) { return parts[static_cast<std::size_t>(p)]; }

}  // namespace banyan::fault::catalog
