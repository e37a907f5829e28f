// SPDX-License-Identifier: BSD-3-Clause
#include <cctype>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "spank/plugin.hpp"
#include "spank/srun_step.hpp"
#include "spank/submission.hpp"

namespace banyan::spank {
namespace {

using train::option_count;
using train::option_names;
using train::which;

// One process is one srun, sbatch or slurmstepd: what its command line said lives as long as the process, or
// as the component of a heterogeneous job that it was said for.
std::array<std::optional<std::string>, option_count> chosen;
std::array<unsigned, option_count> times_given;  // since the last component of a heterogeneous srun
bool train_given = false;

int accept(int index, const char* text, int remote) {
    const auto option = static_cast<which>(index);
    const auto checked = train::check(option, text ? text : "");
    if (!checked) {
        // In slurmstepd the text was checked by srun already; an error there would only drain the node.
        if (remote) return SLURM_SUCCESS;
        refuse(checked.error().text());
    }
    chosen[option] = text;
    ++times_given[option];
    return SLURM_SUCCESS;
}

int accept_train(int, const char*, int) {
    train_given = true;
    return SLURM_SUCCESS;
}

void register_option(spank_t sp, const char* name, const char* argument, const char* help, std::size_t index,
                     spank_opt_cb_f callback) {
    spank_option option{const_cast<char*>(name), const_cast<char*>(argument), const_cast<char*>(help),
                        argument != nullptr,     static_cast<int>(index),     callback};
    if (spank_option_register(sp, &option) != ESPANK_SUCCESS)
        slurm_error("banyan: --%s is taken by another plugin", name);
}

}  // namespace

settings parse_settings(int ac, char** av) {
    const std::vector<std::string> words(av, av + ac);
    auto out = settings::from(words);
    for (const auto& word : out.ignored)
        slurm_error("banyan: plugstack.conf: unknown argument \"%s\"; %s", word.c_str(),
                    plugstack_hint(word).c_str());
    return out;
}

int register_options(spank_t sp) {
    forget_enclosing_job();
    remember_environment();
    for (std::size_t i = 0; i < option_count; ++i) {
        const auto& name = option_names[i];
        register_option(sp, name.option, name.argument, name.help, i, accept);
    }
    // Which of a job's steps is the training only its srun can say; slurmstepd is told what srun was.
    if (spank_context() == S_CTX_ALLOCATOR) return SLURM_SUCCESS;
    register_option(sp, train::train_option, nullptr,
                    "[banyan] this step is the training, whatever else is typed", option_count, accept_train);
    // An srun that made the allocation has left it for its ranks.
    ::unsetenv(train::train_carrier);
    return SLURM_SUCCESS;
}

int settle_options(spank_t sp) {
    begin_component();
    for (std::size_t i = 0; i < option_count; ++i) {
        const auto& name = option_names[i];
        if (is_left_over(static_cast<which>(i), times_given[i])) {
            chosen[i].reset();
            ::unsetenv(name.env);
            spank_job_control_unsetenv(sp, name.env);
        }
        const char* variable = users_variable(static_cast<which>(i));
        if (!chosen[i] && variable && *variable) {
            // Slurm itself carries only what stood on a command line.
            spank_job_control_setenv(sp, name.env, variable, 1);
            const auto checked = train::check(static_cast<which>(i), variable);
            if (!checked)
                refuse(checked.error().text() + "; the value stands in the environment variable " +
                       name.variable);
            chosen[i] = variable;
        }
        if (chosen[i])
            tell_option(static_cast<which>(i), *chosen[i]);
        else
            ::unsetenv(name.variable);
    }
    if (spank_context() == S_CTX_LOCAL)
        settle_step(sp);
    else
        settle_submission();
    times_given.fill(0);
    return end_component(chosen);
}

void choose(which option, std::optional<std::string> text) { chosen[option] = std::move(text); }

std::optional<std::string> option_text(which option) { return chosen[option]; }

result<train::options> asked_options() {
    train::env_reader reader;
    std::array<std::string, option_count> entries;
    for (std::size_t i = 0; i < option_count; ++i) {
        if (!chosen[i]) continue;
        entries[i] = std::string(option_names[i].env) + "=" + *chosen[i];
        reader.take(entries[i]);
    }
    return reader.finish();
}

// Slurm hands over what sbatch left in the environment as if it had been typed.
bool given_here(which option) { return times_given[option] > (was_inherited(option) ? 1u : 0u); }

bool says_train() { return train_given; }

std::string submitted_text(which option) {
    const char* value = std::getenv((std::string("SLURM_SPANK_") + option_names[option].env).c_str());
    return value ? value : "";
}

void refuse_what_the_job_decides() {
    for (const auto option : {train::spares, train::min_dp, train::model, train::wait, train::checkpoint}) {
        const auto submitted = submitted_text(option);
        if (!given_here(option) || *chosen[option] == submitted) continue;
        // A job without checkpoints leaves them to its steps.
        if (option == train::checkpoint && submitted.empty()) continue;
        refuse(
            fmt::format("--{}={} cannot be said for a step: the job was submitted {}; omit it, or submit a "
                        "job with it",
                        option_names[option].option, *chosen[option],
                        submitted.empty() ? "without it" : "with " + submitted));
    }
}

std::string dimension_variable(topo::dimension d, const char* what) {
    std::string out = "BANYAN_";
    for (const char c : topo::name_of(d))
        out += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return out + "_" + what;
}

std::string job_variable(spank_t sp, const char* name) {
    if (spank_context() != S_CTX_REMOTE) {
        const char* value = std::getenv(name);
        return value ? value : "";
    }
    // spank_getenv tells that the buffer was too small, not how large it should be.
    constexpr std::size_t most = 256 * 1024;
    for (std::size_t size = 4096; size <= most; size *= 4) {
        std::string buffer(size, '\0');
        const auto rc = spank_getenv(sp, name, buffer.data(), static_cast<int>(size));
        if (rc == ESPANK_NOSPACE) continue;
        if (rc != ESPANK_SUCCESS) return {};
        buffer.resize(std::strlen(buffer.c_str()));
        return buffer;
    }
    return {};
}

}  // namespace banyan::spank
