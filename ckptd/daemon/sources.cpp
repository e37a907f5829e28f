// SPDX-License-Identifier: BSD-3-Clause
//
// What a launch can begin from beside its nodes' memory, as the first slot's daemon finds it out before
// anything is chosen: the directory's steps, and the memory of nodes of earlier launches.
#include <algorithm>

#include <fmt/format.h>

#include "ckptd/daemon/launches.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds look_again_after{1000};
constexpr std::size_t enough_steps = 8;  // of storage: more than can be damaged and still be worth a start

struct stored_steps {
    std::vector<copy_key> usable;      ///< the newest; of this job with their generation, of others as oldest
    std::vector<std::string> damaged;  ///< what is wrong with those that are newer than all of these
};

// Nothing is there. Where the directory's file system is not mounted that looks the same: its name is
// missing, or a folder of root's is empty. So it counts where the user can write it, though the disk may be
// full, where it is in use, and for a named state where its job has checkpoints (in `home`).
result<void> check_empty(const storage_user& user, const std::string& dir, const std::string& home) {
    const auto ready = prepare_directory(user, dir);
    if (ready || ready.error().code == errc::exhausted || is_in_use(user, dir)) return {};
    if (const auto steps = list_steps(user, home); home != dir && steps && !steps->empty()) return {};
    return fail(errc::unavailable,
                fmt::format("no checkpoint is seen in {}, which is not usable: {}", dir, ready.error().what),
                "is it mounted on this node? If there is none yet, give a directory that the user can make");
}

/// Whose steps are looked for.
struct sought {
    std::string home;    ///< of the job, where `dir` is that of a state with a name
    bool began = false;  ///< it has trained before: an empty directory has to be looked at twice
    std::uint64_t job = 0;
};

result<stored_steps> committed_steps(const storage_user& user, const std::string& dir, const sought& of) {
    stored_steps out;
    BANYAN_TRY(auto listed, list_steps(user, dir));
    if (listed.empty() && of.began) {
        BANYAN_CHECK(check_empty(user, dir, of.home));
        BANYAN_TRY(listed, list_steps(user, dir));  // it may have been mounted in between
    }
    std::string why;
    for (const auto step : listed) {
        if (out.usable.size() >= enough_steps) break;
        const auto m = scan_step(user, dir, step, 0);
        if (!m && !was_seen(m.error())) {
            if (out.usable.empty()) return std::unexpected(m.error());
            break;  // what is newer stands, and of what is older nothing is said
        }
        if (!m && m.error().code == errc::invalid_input && out.usable.empty() &&
            out.damaged.size() < enough_steps)
            out.damaged.push_back(m.error().what);
        if (m)
            out.usable.push_back({m->job == of.job ? m->generation : 0, m->step});
        else if (why.empty())
            why = fmt::format("step {}: {}", step, m.error().what);
    }
    // There is something, and it is not for us to say that it is nothing.
    if (out.usable.empty() && !listed.empty())
        return fail(errc::conflict,
                    fmt::format("none of the {} checkpoints in {} can be used: {}", listed.size(), dir, why),
                    "to begin anew, give another directory with --train-ckpt, or move these away");
    return out;
}

}  // namespace

void launches::look_at_storage(const session_ptr& s) { core_.spawn(look(s, ++s->storage.look)); }

task<void> launches::look(session_ptr s, std::uint64_t number) {
    co_await look_in_storage(s, number);
    if (s->storage.look == number) s->storage.looked = number;
}

task<void> launches::ask_former(session_ptr s, std::uint64_t number) {
    co_await tell_what_there_is(s, number, std::nullopt);
}

task<void> launches::tell_what_there_is(session_ptr s, std::uint64_t number,
                                        std::optional<std::vector<copy_key>> stored) {
    auto elsewhere = co_await to_.former.ask(s, number);
    if (s->closed || s->storage.look != number) co_return;
    if (!stored) s->storage.looked = number;
    open_former_states(s);
    const bool in_vain = elsewhere && elsewhere->some_are_silent && !elsewhere->in_haste;
    s->agreed->there_is(std::move(stored), std::move(elsewhere));
    const auto* c = s->agreed->rules().coordinating();
    if (!c || !c->awaited()) {
        s->hindered.choice.reset();
        if (in_vain) to_.former.tell_of_silence(s);
        co_return;
    }
    const auto who = compress_hostlist(s->former.silent);
    hindrances::note(s->hindered.choice, hindrance::of::holder,
                     fmt::format("step {} has had its second copies, and is not whole without {}: no answer "
                                 "from there, and no older step is taken for it",
                                 c->awaited()->step, who));
    s->notify();
}

// Every look at the directory may take for ever.
task<result<void>> launches::own_directory(session_ptr s, std::uint64_t number) {
    if (s->request.flush == 0) co_return result<void>{};
    // What another job that lives has there is not ours to begin from. Where the directory cannot be written
    // to, it may still be read.
    const auto owned = co_await to_.dirs.own(s);
    if (s->closed || s->storage.look != number) co_return result<void>{};
    if (!owned && owned.error().code == errc::conflict) co_return std::unexpected(owned.error());
    s->former.unread = !owned;
    co_return result<void>{};
}

task<void> launches::look_in_storage(session_ptr s, std::uint64_t number) {
    const auto dir = s->request.dir;
    s->storage.refused.reset();
    s->storage.newest.reset();
    if (dir.empty()) {
        co_await tell_what_there_is(s, number, std::vector<copy_key>{});
        co_return;
    }
    const auto in_job = s->state.empty() ? std::string() : fmt::format("/states/{}", s->state);
    const sought wanted{dir.substr(0, dir.size() - in_job.size()),
                        s->request.restart != 0 || s->agreed->rules().copies().begun().generation != 0,
                        s->job()};
    const auto work = [user = s->user, dir, wanted] { return committed_steps(user, dir, wanted); };
    const auto is_void = [&] { return s->closed || s->storage.look != number; };
    s->storage.problem = fmt::format("the checkpoint directory {} does not answer", dir);
    hindrances::note(s->hindered.choice, hindrance::of::storage, s->storage.problem);
    while (!is_void()) {
        const auto owned = co_await own_directory(s, number);
        if (is_void()) co_return;
        if (!owned) {
            refuse_storage(s, owned.error());
            co_return;
        }
        const auto durable = s->durable;
        auto found = co_await core_.storage.run(s->user.uid, work);
        if (is_void()) co_return;
        if (found) {
            s->storage.problem.clear();
            s->hindered.choice.reset();
            pass_over_damaged(s, found->damaged);
            if (!found->usable.empty()) s->storage.newest = found->usable.front().step;
            co_await tell_what_there_is(s, number, std::move(found->usable));
            if (is_void()) co_return;
            if (s->durable && s->durable != durable)  // since it was looked at
                s->agreed->stored(*s->durable, core_.config.keep);
            co_return;
        }
        if (found.error().code == errc::conflict) {
            refuse_storage(s, found.error());
            co_return;
        }
        s->storage.problem = found.error().text();
        hindrances::note(s->hindered.choice, hindrance::of::storage, s->storage.problem);
        s->notify();
        co_await s->changed->wait(clock::now() + look_again_after);
    }
}

// The job may go back behind one of them: never without a word.
void launches::pass_over_damaged(const session_ptr& s, const std::vector<std::string>& damaged) {
    for (const auto& why : damaged) {
        to_.users.note_stored_damage(s, s->own_ranks().empty() ? 0 : s->own_ranks().front(), why);
        to_.users.warn(s, why,
                       fmt::format("a step in {} cannot be restored, an older one is looked for: {}",
                                   s->request.dir, why));
    }
}

void launches::refuse_storage(const session_ptr& s, const error& why) {
    s->storage.refused = why;
    to_.users.warn(s, s->request.dir, why.text());
    s->notify();
}

}  // namespace banyan::ckpt
