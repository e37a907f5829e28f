// SPDX-License-Identifier: BSD-3-Clause
//
// The options of the srun, sbatch or salloc in which this plugin runs. Slurm has functions for them (its
// cli_filter plugins use them), but no public header: they are looked up at run time, and where a release
// lacks one the options stay as they are. Tried live: 22.05.8, 26.05.3.
#pragma once

#include <string>

namespace banyan::spank {

class slurm_options {
  public:
    /// Null outside srun, and where Slurm has other functions than we know.
    static const slurm_options* of_srun();
    /// The same for sbatch and salloc, whose caller has to know that it is in one of them.
    static const slurm_options* of_submission();

    /// On the command line or by a variable of srun's.
    bool is_set(const char* name) const { return isset_(opt_, name); }
    /// On the command line. Options without a letter have no such question.
    bool is_typed(char letter) const { return typed_(opt_, letter); }
    /// A step of several components, each with numbers of its own: srun ... : ...
    bool has_components() const { return components_ && *components_; }
    /// The value as srun now has it; empty when there is none.
    std::string text(const char* name) const;
    /// False when Slurm refuses the value.
    bool set(const char* name, const std::string& value) const {
        return set_(opt_, name, value.c_str(), false) == 0;
    }

    /// As if it had never been given.
    bool reset(const char* name) const { return reset_(opt_, name); }

  private:
    bool load();

    void* opt_ = nullptr;
    bool (*isset_)(void* opt, const char* name) = nullptr;
    bool (*typed_)(void* opt, int letter) = nullptr;
    char* (*get_)(void* opt, const char* name) = nullptr;
    int (*set_)(void* opt, const char* name, const char* value, bool early) = nullptr;
    const bool* components_ = nullptr;
    bool (*reset_)(void* opt, const char* name) = nullptr;
    void (*free_)(void** text) = nullptr;
};

}  // namespace banyan::spank
