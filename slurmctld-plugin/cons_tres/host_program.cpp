// SPDX-License-Identifier: GPL-2.0-or-later
#include "slurmctld-plugin/cons_tres/host_program.hpp"

#include <atomic>

#include <dlfcn.h>

namespace banyan::slurm {
namespace {

/// Looked up, since a program that does not have it must be able to load us all the same.
const slurm_conf_t* configuration() {
    static const auto* conf = static_cast<const slurm_conf_t*>(::dlsym(RTLD_DEFAULT, "slurm_conf"));
    return conf;
}

std::string_view program() {
    static char* const* const name = static_cast<char**>(::dlsym(RTLD_DEFAULT, "slurm_prog_name"));
    return name && *name ? *name : std::string_view();
}

std::string_view text(const char* of) { return of ? of : std::string_view(); }

bool speaks_for_cons_tres = false;  ///< set once, by init, before any other call

void speak_as(std::uint32_t number) { std::atomic_ref(::plugin_id).store(number, std::memory_order_relaxed); }

}  // namespace

std::string_view plugin_folders() {
    const auto* conf = configuration();
    return conf ? text(conf->plugindir) : std::string_view();
}

bool selected() {
    const auto* conf = configuration();
    return conf && text(conf->select_type) == our_type;
}

void begin_numbering() {
    const bool ours = selected();
    speaks_for_cons_tres = ours && program() != "slurmctld";
    speak_as(ours && loads_one_select_plugin(program()) ? cons_tres_id : our_id);
}

void was_called() {
    if (speaks_for_cons_tres) speak_as(cons_tres_id);
}

void jobs_are_restored() {
    if (selected()) speak_as(cons_tres_id);
}

}  // namespace banyan::slurm
