// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/decision.hpp"

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::supervisor {
namespace {

decision finish(std::string why = {}) { return {action::finish, 0, std::move(why), {}}; }

/// srun's end where it did not reach slurmd on one of the nodes: the low byte of Slurm's
/// SLURM_COMMUNICATIONS_CONNECTION_ERROR. The node is dead, and Slurm takes it away when it has not heard it
/// for SlurmdTimeout, which is minutes.
constexpr int not_reached = 1001 & 0xff;

bool brought_further(const situation& s) {
    return s.saved_after && (!s.saved_before || *s.saved_after > *s.saved_before);
}

/// Restarts in a row that did not bring the training further. The loss of a node is not the program's doing:
/// it neither counts nor clears.
std::uint32_t idle_after(const situation& s, bool node_lost) {
    if (s.end.code == not_reached) node_lost = true;
    if (brought_further(s)) return 0;
    return node_lost ? s.idle_restarts : s.idle_restarts + 1;
}

/// slurmstepd ends a task whose program it cannot run with the error number, and a shell with 126 or 127. To
/// start it again would print the same once more.
bool could_not_run(const situation& s) {
    const auto code = s.end.code;
    const bool says_so =
        code == ENOENT || code == ENOEXEC || code == EACCES || code == ENOTDIR || code == 126 || code == 127;
    return says_so && s.end.ran < soon && s.restarts == 0 && !s.saved_after;
}

/// A wrong option, a step that Slurm refuses: srun would say the same once more.
bool was_refused(const situation& s) {
    return !s.began && !s.recovering && s.restarts == 0 && s.end.ran < soon;
}

/// A restart with fewer groups that ended by itself, without a new training step.
bool was_shrunk_in_vain(const situation& s, bool node_lost) {
    return s.recovering && s.began && !node_lost && s.end.code != not_reached &&
           s.nodes_before.size() < s.nodes_of_all && s.now.nodes.size() < s.nodes_of_all;
}

/// The kind of the program's own error that brought no new training step; empty where it was none. On fewer
/// nodes than it asked for, what is wrong with them is not the program's.
std::string own_error(const situation& s, bool node_lost) {
    if (!s.told.own || node_lost || brought_further(s)) return {};
    return s.nodes_before.size() < s.nodes_of_all ? std::string() : s.told.kind;
}

/// Why the program's own error would come again; nothing where it may not. One of the program's text does
/// so that comes before any training step of the job, and any other one that came twice.
std::optional<std::string> would_come_again(const situation& s, const std::string& kind) {
    if (kind.empty()) return {};
    if (kind == s.kind_before) return "the program ended itself twice in the same way: " + s.told.words;
    if (s.told.of_code && !s.saved_before && !s.saved_after && !s.requeued)
        return "the program ended itself: " + s.told.words;
    return {};
}

}  // namespace

std::vector<std::string> lost_nodes(const std::vector<std::string>& before,
                                    const std::vector<std::string>& now) {
    std::vector<std::string> out;
    for (const auto& node : before)
        if (std::ranges::find(now, node) == now.end()) out.push_back(node);
    return out;
}

decision decide(const situation& s) {
    if (s.end.code == 0) return finish();
    if (s.end.cancelled) return finish("it was cancelled by a signal");
    if (!s.now.known) return {action::wait, s.idle_restarts, "slurmctld does not answer"};
    if (!s.now.running) return finish(fmt::format("the job is ending (state {})", s.now.state));

    const bool node_lost = s.left || !lost_nodes(s.nodes_before, s.now.nodes).empty();
    if (!s.planned && !node_lost) return finish();
    const auto kind = own_error(s, node_lost);
    if (auto why = would_come_again(s, kind)) return {action::finish, s.idle_restarts, std::move(*why), kind};
    if (s.restarts >= s.max_restarts)
        return finish(fmt::format("{} restarts is the limit (--max-restarts)", s.restarts));
    if (!node_lost && could_not_run(s))
        return finish(
            fmt::format("code {} at once says that the program is not there, cannot be run, or does "
                        "not understand its arguments",
                        s.end.code));
    if (!node_lost && was_refused(s)) return finish("no step was seen to begin; what srun said tells why");
    const bool without_step = s.recovering && !s.began;
    const auto idle = without_step ? s.idle_restarts : idle_after(s, node_lost);
    if (idle > s.max_idle_restarts)
        return finish(fmt::format("{} restarts in a row brought no new training step (--max-idle-restarts)",
                                  s.max_idle_restarts));
    if (s.now.nodes.size() < s.nodes_needed) {
        const auto why = fmt::format("the allocation has {} nodes left and the job needs {}",
                                     s.now.nodes.size(), s.nodes_needed);
        if (s.now.no_requeue.empty()) return {action::requeue, idle, why};
        // Slurm gives a running job no node.
        return finish(fmt::format("{}, and {}", why, s.now.no_requeue));
    }
    // What cannot train with fewer groups may with all of them: the rung below is tried, and not that again.
    if (was_shrunk_in_vain(s, node_lost) && s.now.no_requeue.empty())
        return {action::requeue, idle,
                fmt::format("on {} of {} nodes the job did not come to train", s.nodes_before.size(),
                            s.nodes_of_all)};
    if (!without_step) return {action::restart, idle, {}, kind};
    if (s.stood < s.start_within) return {action::again, idle, {}};
    const auto why = fmt::format("Slurm gave no step in {} s (--start-within)", s.stood.count() / 1000);
    if (s.now.no_requeue.empty()) return {action::requeue, idle, why};
    return finish(fmt::format("{}, and {}", why, s.now.no_requeue));
}

std::string end_line(const situation& s, const std::string& step) {
    const bool looked = s.now.known && s.now.running;
    const auto lost = looked ? lost_nodes(s.nodes_before, s.now.nodes) : std::vector<std::string>();
    auto line = fmt::format("{} ended with code {}", step.empty() ? "the step" : "step " + step, s.end.code);
    if (!lost.empty()) line += fmt::format(" ({} left the allocation)", compress_hostlist(lost));
    return line;
}

std::string restart_line(const situation& s, const std::string& step,
                         const std::vector<std::string>& spares) {
    const auto lost = lost_nodes(s.nodes_before, s.now.nodes);
    auto line = end_line(s, step) + "; starting it again";
    if (lost.empty())
        line += " on the same nodes";
    else if (!spares.empty() && spares.size() <= lost.size())
        line += fmt::format(" with {} instead", compress_hostlist(spares));
    else if (!spares.empty())
        line += fmt::format(" with {} of {} instead", lost.size(), compress_hostlist(spares));
    else
        line += fmt::format(" on {}", compress_hostlist(s.now.nodes));
    if (s.now.nodes.size() < s.nodes_of_all) line += ", with fewer data parallel groups";
    return line + fmt::format(", restart {}", s.restarts + 1);
}

}  // namespace banyan::supervisor
