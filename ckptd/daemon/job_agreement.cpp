// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/job_agreement.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace banyan::ckpt {
namespace {

constexpr std::size_t most_waiting = 4096;  // all of it is said again when it is lost

// The newest checkpoint that is voted for; nothing where there are other messages, too.
std::optional<copy_key> voted_for(const job_agreement::messages& all) {
    copy_key newest;
    for (const auto& m : all) {
        const auto* v = std::get_if<agreement::vote>(&m.what);
        if (!v) return std::nullopt;
        for (const auto& one : v->kept) newest = std::max(newest, one.key);
    }
    return newest;
}

// Those of every step, which their sender says again at its ticks, or when it is asked again: a vote, and the
// answer to all votes. The rest of the agreement waits for what others say.
bool comes_again(const agreement::message& m) {
    return std::holds_alternative<agreement::vote>(m.what) ||
           std::holds_alternative<agreement::commit>(m.what) ||
           std::holds_alternative<agreement::passed_over>(m.what);
}

}  // namespace

void job_agreement::open(const agreement::launch& l) {
    if (l.generation <= rules_.generation()) return;
    self_ = l.self;
    launch_ = l.generation;
    outboxes_.assign(l.nodes, {});
    act(rules_.open(l));
}

void job_agreement::recall(agreement::agreement kept, std::uint64_t nonce) {
    rules_ = std::move(kept);
    if (rules_.generation() == 0) return;
    rules_.recall(nonce);
    self_ = rules_.slot();
    launch_ = first_round(rules_.generation());
    outboxes_.assign(rules_.slots(), {});
}

void job_agreement::receive(std::uint32_t from, const messages& what) {
    for (const auto& m : what) events_.push_back({rules_.receive(from, m), false});
    act_on_all();
}

void job_agreement::brought(const agreement::ballot& number, std::vector<std::uint32_t> failed) {
    act(rules_.brought(number, std::move(failed)));
}

void job_agreement::tick() {
    if (launch_ == 0) return;
    rules_.follow(leader());
    act(rules_.tick(), true);
    // Whoever was silent is asked until it answers; slot 0 hears that somebody waits for it to begin.
    for (std::uint32_t slot = 0; slot < outboxes_.size(); ++slot)
        if (slot != self_ && !outboxes_[slot].sending &&
            (outboxes_[slot].silent || (slot == 0 && !rules_.has_begun())))
            post(slot, {rules_.generation(), agreement::outbid{}});
}

void job_agreement::act(agreement::effects what, bool repeats) {
    events_.push_back({std::move(what), repeats});
    act_on_all();
}

// What an event leads to may be another event: one after the other. Before anybody hears of any of them, all
// that has changed is kept: a daemon that is started again must not take back what it has said. Of a thousand
// ranks' votes all but one change nothing.
void job_agreement::act_on_all() {
    if (std::exchange(acting_, true)) return;
    const struct done {
        bool& acting;
        ~done() { acting = false; }
    } done{acting_};
    bool changed = false;
    while (!events_.empty()) {
        std::vector<event> batch;
        bool news = false;
        for (; !events_.empty(); events_.pop_front()) {
            auto& next = batch.emplace_back(std::move(events_.front()));
            news = news || !next.what.counted;
            for (const auto& [to, m] : next.what.send)
                if (to == self_) events_.push_back({rules_.receive(self_, m), false});  // that is new
        }
        if (news) host_.keep();
        for (auto& one : batch) carry_out(std::move(one));
        changed = changed || news;
    }
    if (!changed) return;
    if (rules_.generation() != round_) {
        round_ = rules_.generation();
        round_since_ = clock::now();
    }
    host_.changed();
}

void job_agreement::carry_out(event e) {
    for (const auto number : e.what.gone) host_.free(number);
    if (e.what.fenced) host_.fenced();
    if (e.what.forgot) host_.forgot();
    if (e.what.bring) host_.bring(std::move(*e.what.bring));
    if (e.what.go && rules_.has_begun()) host_.begin();  // else a newer round has come in between
    std::vector<bool> under_way(outboxes_.size());
    if (e.repeats)
        for (std::size_t slot = 0; slot < outboxes_.size(); ++slot) under_way[slot] = outboxes_[slot].sending;
    for (auto& [to, m] : e.what.send) {
        if (to == self_ || to >= under_way.size()) continue;
        const bool asks = e.repeats || !comes_again(m);
        if (under_way[to])
            outboxes_[to].asks = true;  // whether it is still there is to be known all the same
        else
            post(to, std::move(m), asks);
    }
}

void job_agreement::post(std::uint32_t slot, agreement::message m, bool asks) {
    auto& box = outboxes_[slot];
    box.asks = box.asks || asks;
    if (box.waiting.size() >= most_waiting) return;
    box.waiting.push_back(std::move(m));
    if (std::exchange(box.sending, true)) return;
    host_.spawn(pump(slot, launch_));
}

task<void> job_agreement::pump(std::uint32_t slot, std::uint64_t launch) {
    const auto self = shared_from_this();
    while (launch_ == launch && !outboxes_[slot].waiting.empty()) {
        if (const auto newest = voted_for(outboxes_[slot].waiting)) {
            co_await host_.gather(*newest);
            if (launch_ != launch) co_return;
        }
        auto frame = std::exchange(outboxes_[slot].waiting, {});
        const bool asks = std::exchange(outboxes_[slot].asks, false) || outboxes_[slot].silent;
        const auto answered = co_await (asks ? host_.send : host_.tell)(slot, std::move(frame));
        if (launch_ != launch) co_return;
        auto& silent = outboxes_[slot].silent;
        const auto led = leader();
        if (answered && asks)
            silent.reset();
        else if (!answered)
            silent = silence{slot, silent ? silent->since : clock::now(), answered.error()};
        rules_.follow(leader());
        // What the one before was told is lost with it.
        if (!answered && leader() != led && rules_.has_begun()) act(rules_.tick(), true);
    }
    if (launch_ == launch) outboxes_[slot].sending = false;
}

std::optional<job_agreement::silence> job_agreement::missing() const {
    std::optional<silence> longest;
    for (const auto& box : outboxes_) {
        if (box.silent && (!longest || box.silent->since < longest->since)) longest = box.silent;
        if (!rules_.coordinating()) break;
    }
    if (longest) longest->since = std::max(longest->since, round_since_);
    return longest;
}

std::uint32_t job_agreement::leader() const {
    for (std::uint32_t slot = 0; slot < outboxes_.size(); ++slot)
        if (slot == self_ || !outboxes_[slot].silent) return slot;
    return self_;
}

}  // namespace banyan::ckpt
