// SPDX-License-Identifier: BSD-3-Clause
//
// States that a job's processes keep besides the one without a name. docs/decisions/017.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ckptd/daemon/launches.hpp"
#include "ckptd/protocol/state_name.hpp"

namespace banyan::ckpt {
namespace {

std::vector<std::string> names_of_states(const session& job) {
    std::vector<std::string> out;
    for (const auto& [name, s] : job.states) out.push_back(name);
    return out;
}

// Between a requeue and its first launch the request, and who holds which slot, are that launch's already.
bool runs_as_asked(const session& job) {
    return job.generation >= make_generation(job.request.restart, std::nullopt);
}

}  // namespace

result<session_ptr> launches::open_state(const session_ptr& job, const std::string& name) {
    BANYAN_CHECK(check_state_name(name));
    if (const auto known = job->states.find(name); known != job->states.end()) {
        follow(job, known->second);
        return known->second;
    }
    if (job->states.size() >= max_states)
        return fail(errc::conflict,
                    fmt::format("job {} has {} named states ({}), and may have {}: there is none for \"{}\"",
                                job->job(), job->states.size(), fmt::join(names_of_states(*job), ", "),
                                max_states, name),
                    "save it as part of one of these, whose regions may differ from step to step: "
                    "bck_checkpoint_of");
    if (job->closed || !job->slot || !runs_as_asked(*job))
        return fail(errc::unavailable,
                    fmt::format("job {} is in no launch on node {}", job->job(), core_.config.node));
    const auto s = make_session();
    s->state = name;
    s->detached = job->detached;
    s->lease_end = job->lease_end;
    s->user = job->user;
    job->states[name] = s;
    follow(job, s);
    // A later launch rests on what is held here, of every state: nothing of this one is to come to it.
    if (job->agreed->rules().is_over()) s->agreed->end_launch(UINT64_MAX);
    core_.keep(s);
    core_.spawn(prepare_state(s));
    spdlog::info("{}: opened, the job has {} of {}", in_words(*s), job->states.size(), max_states);
    return s;
}

void launches::follow(const session_ptr& job, const session_ptr& s) {
    const auto launch = first_round(job->generation);
    if (!job->slot || !runs_as_asked(*job) || launch <= first_round(s->generation)) return;
    // Also the nodes that its job needs no more: this state may.
    auto& earlier = s->agreed->earlier();
    earlier.add_all(job->agreed->rules().earlier().nodes());
    earlier.add_all(job->former.left);
    for (const auto& [name, addr] : s->addresses) earlier.add({name, addr});
    if (s->request.restart != job->request.restart) s->warnings = {};
    s->request = job->request;
    if (!s->request.dir.empty()) s->request.dir += fmt::format("/states/{}", s->state);
    s->request.bytes = 0;  // said of the state without a name
    s->addresses = job->addresses;
    s->slot = job->slot;
    open_launch(s, launch);
}

task<void> launches::prepare_state(session_ptr s) {
    const auto warning = co_await to_.dirs.prepare(s);
    if (!warning.empty()) to_.users.warn(s, s->request.dir, warning);
}

// Whether a rank asks for them or not: once this launch stands alone, those nodes let go of what they hold.
void launches::open_former_states(const session_ptr& job) {
    for (const auto& name : std::exchange(job->former.states, {})) {
        const auto opened = open_state(job, name);
        if (!opened) to_.users.warn(job, "states", opened.error().text());
    }
}

}  // namespace banyan::ckpt
