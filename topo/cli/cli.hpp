// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-topo: one file per subcommand. Each adds itself to the parser and leaves behind what to run.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include <CLI/CLI.hpp>
#include <banyan/topo/fabric.hpp>
#include <banyan/topo/health.hpp>

#include "common/result.hpp"
#include "train/plan.hpp"

namespace banyan::topo::cli {

/// Exit codes of every subcommand.
enum exit_code { fine = 0, found_something = 1, unusable = 2 };

/// What the chosen subcommand does; an error is printed as "banyan-topo: what; hint" and ends with
/// `unusable`.
using action = std::function<result<int>()>;

void add_check(CLI::App& app, action& chosen);
void add_diff(CLI::App& app, action& chosen);
void add_discover(CLI::App& app, action& chosen);
void add_draw(CLI::App& app, action& chosen);
void add_explain(CLI::App& app, action& chosen);
void add_gen(CLI::App& app, action& chosen);
void add_nccl(CLI::App& app, action& chosen);
void add_place(CLI::App& app, action& chosen);
void add_show(CLI::App& app, action& chosen);
void add_slurm(CLI::App& app, action& chosen);
void add_snapshot(CLI::App& app, action& chosen);

/// The defects that count: all but notices.
inline std::size_t faults(const fabric& f) {
    return static_cast<std::size_t>(
        std::count_if(f.defects.begin(), f.defects.end(), [](const defect& d) { return !is_notice(d); }));
}

/// `text`, or its start and "..." where it is longer than `width` bytes.
inline std::string cut(const std::string& text, std::size_t width) {
    return text.size() > width ? text.substr(0, width - 3) + "..." : text;
}

/// The FABRIC that most subcommands take, and what helps to read it. A dump or a snapshot, told apart by its
/// content; "-" is standard input.
class fabric_input {
  public:
    void add_to(CLI::App& sub);
    /// As --fabric instead of the first argument; the snapshot that banyan.conf names where it is not given.
    void add_option_to(CLI::App& sub);
    /// A dump's leaf groups keep the ids of `previous`, if given; a snapshot's are settled.
    result<fabric> load(const fabric* previous = nullptr) const;
    const std::string& path() const { return path_; }
    /// An error where it has none: how the first HCA without a host is called shows why.
    result<void> need_hosts(const fabric& f) const;

  private:
    void add_side_files(CLI::App& sub);
    result<void> look_at_health(fabric& f, health& found) const;
    std::string path_, names_, site_, limits_, avoid_;
    std::vector<std::string> health_;
};

/// The same without anything that helps.
result<fabric> load_fabric(const std::string& path);

/// Host indices of a Slurm host list; an error names the first that the fabric lacks. An empty list gives all
/// hosts.
result<std::vector<std::uint32_t>> hosts_from(const fabric& f, const std::string& hostlist);

/// A job's plan: as JSON (its own, or what place --json prints), as the credential that travels with the job
/// (which munge opens), or a file with either;
/// "-" is standard input. Who wrote it is not looked at.
result<train::plan> plan_from(const std::string& given);

}  // namespace banyan::topo::cli
