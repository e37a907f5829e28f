// SPDX-License-Identifier: BSD-3-Clause
//
// Faults that come without a number of the GPU driver: what each is called, what it speaks of, what it asks
// for when it stands alone, and the page of the runbook. The codes travel between agents and controllers and
// stand in the history: a code is never used for another symptom.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace banyan::fault::catalog {

enum class symptom : std::uint32_t {
    gpu_init = 1,
    gpu_driver,
    gpu_count,
    gpu_memory,
    gpu_slow,
    gpu_missing,
    hca_health = 10,
    hca_command,
    hca_power,
    hca_temperature,
    hca_module,
    hca_cable,
    hca_transmit,
    hca_port_down,
    hca_errors,
    hca_port_up,
    pcie_corrected = 20,
    pcie_nonfatal,
    pcie_fatal,
    pcie_lost,
    pcie_slot,
    pcie_switch,
    memory_corrected = 30,
    memory_uncorrected,
    memory_page,
    cpu_corrected,
    cpu_uncorrected,
    firmware_corrected,
    firmware_recoverable,
    firmware_fatal,
    disk_timeout = 40,
    disk_error,
    disk_lost,
    file_system_error = 50,
    file_system_readonly,
    file_system_server,
    hung_task = 60,
    soft_lockup,
    hard_lockup,
    stall,
    panic,
    oops,
    out_of_memory_job = 70,
    out_of_memory_node,
    nccl_warning = 80,
    nccl_network,
    nccl_completion,
    nccl_async_event,
    nccl_cuda,
    job_failed = 90,
    job_crashed,
    job_given_up,
    copy_damaged = 95,
    sent_damaged,
    stored_damaged,
};

enum class part : std::uint8_t { gpu, hca, pcie, memory, cpu, disk, file_system, kernel, job };

/// What it asks for when it stands alone.
enum class asks : std::uint8_t { nothing, job, look, drain };

struct symptom_row {
    enum symptom code;
    std::string_view name;  ///< "hca-health"
    enum part part;
    enum asks asks;
    std::string_view reason;  ///< the page of the runbook
    std::string_view description;
};

/// nullptr for a code that the table does not know: from an agent of a newer release.
const symptom_row* find_symptom(std::uint32_t code);
std::span<const symptom_row> symptoms();
/// What root's programs tell of a job (common/job_news): it is the job's, whichever of its nodes tells it.
bool is_told_of_a_job(std::uint32_t code);
/// Of those: how its tasks end, which may follow from a fault that has lines of its own.
bool is_a_jobs_end(std::uint32_t code);
std::string_view name_of(part p);

}  // namespace banyan::fault::catalog
