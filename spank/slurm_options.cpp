// SPDX-License-Identifier: BSD-3-Clause
#include "spank/slurm_options.hpp"

#include <type_traits>

#include <dlfcn.h>

namespace banyan::spank {

bool slurm_options::load() {
    const auto find = [](auto& pointer, const char* name) {
        pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(::dlsym(RTLD_DEFAULT, name));
        return pointer != nullptr;
    };
    find(components_, "local_het_step");
    return find(opt_, "opt") && find(isset_, "slurm_option_isset") &&
           find(typed_, "slurm_option_set_by_cli") && find(get_, "slurm_option_get") &&
           find(set_, "slurm_option_set") && find(reset_, "slurm_option_reset") && find(free_, "slurm_xfree");
}

const slurm_options* slurm_options::of_srun() {
    // opt is that of sbatch and salloc, too.
    return ::dlsym(RTLD_DEFAULT, "sropt") ? of_submission() : nullptr;
}

const slurm_options* slurm_options::of_submission() {
    static slurm_options instance;
    static const bool here = instance.load();
    return here ? &instance : nullptr;
}

std::string slurm_options::text(const char* name) const {
    char* value = get_(opt_, name);
    if (!value) return {};
    std::string out = value;
    free_(reinterpret_cast<void**>(&value));
    return out;
}

}  // namespace banyan::spank
