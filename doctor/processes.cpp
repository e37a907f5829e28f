// SPDX-License-Identifier: BSD-3-Clause
#include "doctor/processes.hpp"

#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::doctor {
namespace {

constexpr std::size_t most_words = 4u << 20;

result<std::vector<std::string>> texts_in(const std::filesystem::path& file) {
    BANYAN_TRY(const auto text, read_file(file, most_words));
    std::vector<std::string> out;
    for (const auto word : split(text, '\0')) out.emplace_back(word);
    if (!out.empty() && out.back().empty()) out.pop_back();
    return out;
}

}  // namespace

result<std::vector<process>> processes_called(const std::string& name) {
    std::vector<process> out;
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
        std::ifstream comm(entry.path() / "comm");
        std::string line;
        if (!std::getline(comm, line) || line != name) continue;
        auto words = texts_in(entry.path() / "cmdline");
        if (!words || words->empty()) continue;  // it has just ended
        struct stat owner {};
        if (::stat(entry.path().c_str(), &owner) != 0) continue;
        process found{owner.st_uid, std::move(*words), {}};
        if (auto environment = texts_in(entry.path() / "environ"); environment && !environment->empty())
            found.environment = std::move(*environment);
        out.push_back(std::move(found));
    }
    if (failed) return fail(errc::unavailable, "cannot list /proc: " + failed.message());
    return out;
}

result<std::vector<process>> root_processes_called(const std::string& name) {
    BANYAN_TRY(auto out, processes_called(name));
    std::erase_if(out, [](const process& of) { return of.user != 0; });
    return out;
}

std::string variable_in(const process& of, const std::string& name) {
    if (of.environment)
        for (const auto& entry : *of.environment)
            if (entry.starts_with(name + "=")) return entry.substr(name.size() + 1);
    return {};
}

std::optional<std::string> conf_of_daemons() {
    for (const auto* name : {"slurmctld", "slurmd"}) {
        const auto found = processes_called(name);
        if (!found) continue;
        for (const auto& daemon : *found) {
            for (std::size_t i = 1; i + 1 < daemon.words.size(); ++i)
                if (daemon.words[i] == "-f") return daemon.words[i + 1];
            if (auto conf = variable_in(daemon, "SLURM_CONF"); !conf.empty()) return conf;
        }
    }
    return {};
}

}  // namespace banyan::doctor
