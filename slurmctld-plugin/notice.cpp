// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/release/release.hpp"
//
#include <algorithm>
#include <array>
#include <map>

#include "common/guard.hpp"
#include "slurmctld-plugin/notice.hpp"

namespace banyan::slurm {

void log_info(const std::string& text) { slurm_info("banyan: %s", text.c_str()); }
void log_error(const std::string& text) { slurm_error("banyan: %s", text.c_str()); }

void log_state(const std::string& topic, const std::string& text) {
    static std::map<std::string, std::string> last;  // a handful of topics, all of them literals
    auto& known = last[topic];
    if (known == text) return;
    known = text;
    if (!text.empty()) log_error(text);
}

void log_job_once(std::uint32_t job_id, const std::string& text) {
    // The newest jobs are the ones that are asked about again and again; a ring bounds the memory.
    static std::array<std::uint32_t, 1024> told{};
    static std::size_t next = 0;
    if (std::find(told.begin(), told.end(), job_id) != told.end()) return;
    told[next++ % told.size()] = job_id;
    log_info("JobId=" + std::to_string(job_id) + ": " + text);
}

void install_guard_sink() {
    guard_sink = [](const char* entry, const char* what) {
        slurm_error("banyan: %s: internal error: %s; going on as plain cons_tres", entry, what);
    };
}

}  // namespace banyan::slurm
