// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/session.hpp"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckptd/net/async.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

void wake(rank_memory_header& header) {
    header.event.fetch_add(1);
    ::syscall(SYS_futex, &header.event, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

std::uint64_t word(const std::optional<copy_key>& key) { return key ? key->step + 1 : 0; }

const std::vector<std::uint32_t>& ranks_of(const session_request& request, std::size_t slot) {
    return slot < request.nodes.size() ? request.nodes[slot].ranks : request.slots[slot].ranks;
}

/// Of the slots of an assignment, which may be more or fewer than those in force.
std::vector<std::uint32_t> buddies_in(const session_request& request, const assignment& a) {
    if (!a.buddies.empty()) return a.buddies;
    std::vector<std::uint32_t> out;
    if (a.nodes.size() == request.nodes.size()) {
        for (const auto& n : request.nodes) out.push_back(n.buddy);
        return out;
    }
    for (const auto& s : request.slots) out.push_back(s.buddy);
    return buddies_of_first(out, static_cast<std::uint32_t>(a.nodes.size()));
}

std::unordered_set<const shard_memory*> files_in(const session& s) {
    std::unordered_set<const shard_memory*> out;
    const auto add = [&](const std::shared_ptr<shard_memory>& m) {
        if (!m) return;
        for (const auto& file : files_of(m)) out.insert(file.get());
    };
    for (const auto& [rank, r] : s.ranks) add(r.memory);
    for (const auto& c : s.copies) add(c->memory);
    for (const auto& [rank, list] : s.free_replicas)
        for (const auto& m : list) add(m);
    for (const auto& m : s.replica_memory) add(m.lock());
    return out;
}

}  // namespace

bool is_as_sealed(const shard_copy& c) {
    if (c.dropped) return false;
    if (c.buffer < 0) return true;
    const auto& header = *reinterpret_cast<const rank_memory_header*>(c.memory->data());
    const auto view = read_buffer(header.buffer[static_cast<std::size_t>(c.buffer)]);
    return view && view->sequence == c.sequence;
}

void session::notify() { changed->notify(); }

const std::vector<std::uint32_t>& session::own_ranks() const {
    static const std::vector<std::uint32_t> none;
    return slot ? request.nodes[*slot].ranks : none;
}

void session::assign(const assignment& a) {
    slot.reset();
    const auto before = request.nodes;
    if (a.nodes.size() != request.nodes.size() && a.nodes.size() <= request.slots.size()) {
        const auto buddies = buddies_in(request, a);
        request.nodes.resize(a.nodes.size());
        request.world = 0;
        for (std::uint32_t i = 0; i < a.nodes.size(); ++i) {
            request.nodes[i].ranks = request.slots[i].ranks;
            request.nodes[i].buddy = buddies[i];
            request.world += static_cast<std::uint32_t>(request.slots[i].ranks.size());
        }
    }
    for (std::uint32_t i = 0; i < a.nodes.size(); ++i) {
        auto& node = request.nodes[i];
        node.name = a.nodes[i];
        node.addr = addresses[a.nodes[i]];
        if (!a.buddies.empty()) node.buddy = a.buddies[i];
        if (node.name == request.self) slot = i;
        former.forget_departure(node.name);
    }
    for (const auto& node : before)
        if (!slot_of(node.name)) former.leaves(node.name, node.addr);
    // The nodes that leave the assignment stay known: a later step may take them back.
    request.spares.clear();
    for (const auto& [name, addr] : addresses)
        if (!slot_of(name)) request.spares.push_back({name, addr});
}

assignment assignment_of(const session_request& request) {
    assignment out;
    for (const auto& n : request.nodes) {
        out.nodes.push_back(n.name);
        out.buddies.push_back(n.buddy);
    }
    return out;
}

std::uint32_t most_ranks(const session_request& request) {
    std::size_t out = 0;
    for (const auto& s : request.slots) out += s.ranks.size();
    return std::max(request.world, static_cast<std::uint32_t>(out));
}

std::vector<std::uint32_t> ranks_in(const session_request& request, const assignment& a) {
    const auto at = std::find(a.nodes.begin(), a.nodes.end(), request.self);
    if (at == a.nodes.end()) return {};
    return ranks_of(request, static_cast<std::size_t>(at - a.nodes.begin()));
}

std::vector<std::uint32_t> ranks_kept_in(const session_request& request, const assignment& a) {
    std::vector<std::uint32_t> out;
    const auto buddies = buddies_in(request, a);
    for (std::size_t i = 0; i < a.nodes.size(); ++i) {
        const auto& ranks = ranks_of(request, i);
        if (buddies[i] != i && a.nodes[buddies[i]] == request.self)
            out.insert(out.end(), ranks.begin(), ranks.end());
    }
    return out;
}

bool session::has_replica_memory(std::uint32_t rank) const {
    const auto free = free_replicas.find(rank);
    return (free != free_replicas.end() && !free->second.empty()) || arriving.contains(rank) ||
           expected.contains(rank) || std::any_of(copies.begin(), copies.end(), [&](const auto& c) {
               return c->rank == rank && !c->own;
           });
}

std::optional<std::uint32_t> session::slot_of(const std::string& node) const {
    for (std::uint32_t i = 0; i < request.nodes.size(); ++i)
        if (request.nodes[i].name == node) return i;
    return std::nullopt;
}

std::vector<session_ptr> with_states(const session_ptr& job) {
    std::vector<session_ptr> out{job};
    for (const auto& [name, s] : job->states) out.push_back(s);
    return out;
}

std::string in_words(const session& s) {
    return s.state.empty() ? fmt::format("job {}", s.job())
                           : fmt::format("job {}, state {}", s.job(), s.state);
}

std::string in_words(const session& s, const hang& what) {
    constexpr std::size_t most = 8;
    std::vector<std::string> nodes;
    for (const auto& node : s.request.nodes)
        if (std::ranges::any_of(what.ranks,
                                [&](auto rank) { return std::ranges::count(node.ranks, rank) != 0; }))
            nodes.push_back(node.name);
    const auto shown = std::min(most, what.ranks.size());
    const bool one = what.ranks.size() == 1;
    return fmt::format(
        "{} {}{} on {} {}: {}", one ? "rank" : "ranks",
        fmt::join(what.ranks.begin(), what.ranks.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        shown < what.ranks.size() ? fmt::format(" and {} more", what.ranks.size() - shown) : "",
        compress_hostlist(nodes), one ? "hangs" : "hang", what.why);
}

std::optional<session_node> holder_of(const session& s, const agreement::choice& c, std::uint32_t number) {
    if (number < s.request.nodes.size()) return s.request.nodes[number];
    const auto outside = number - s.request.nodes.size();
    if (outside >= c.outside.size()) return std::nullopt;
    return session_node{c.outside[outside].name, c.outside[outside].addr, {}, 0};
}

bool session::all_finished() const {
    if (!slot) return copies.empty();  // a spare that was never needed
    const auto& ranks_here = own_ranks();
    return std::all_of(ranks_here.begin(), ranks_here.end(),
                       [&](auto rank) { return finished.contains(rank); });
}

bool is_stored(const session& s) {
    return s.request.flush == 0 || s.request.dir.empty() || !s.committed || s.durable >= s.committed;
}

std::string lacking_in_words(const session& s, const copy_key& key) {
    const auto& rules = s.agreed->rules();
    if (!rules.has_begun()) return "the ranks have not begun: not all of them have come";
    const auto ranks = rules.votes().missing(key);
    std::vector<std::string> names;
    for (const auto& n : s.request.nodes)
        if (std::ranges::any_of(n.ranks, [&](auto rank) { return std::ranges::binary_search(ranks, rank); }))
            names.push_back(n.name);
    if (names.empty()) return "not every rank has saved this step";
    return fmt::format("nothing from {}; look there into slurmd's log and banyan-ckpt status",
                       compress_hostlist(names));
}

void session::beat() {
    for (const auto rank : own_ranks())
        if (const auto it = ranks.find(rank); it != ranks.end() && it->second.memory)
            it->second.header().beat.fetch_add(1);
}

void session::enter_generation(std::uint64_t g, bool new_launch) {
    hung.found.reset();
    generation = g;
    flush.now.reset();
    flush.next_turn = 0;
    flush.newest_turn.reset();
    flush.hung.clear();
    flush.alike.clear();
    incomplete = {};
    bringing.reset();
    places.reset();
    hindered = {};
    commits.forget();
    for (auto& [node, word] : former.said) word.keeps.reset();  // what it said was for the one before
    for (auto& [rank, r] : ranks) {
        r.began.reset();
        r.saved = r.again = false;
    }
    if (!new_launch) return;
    for (auto& [rank, r] : ranks) r.at_buddy = {};  // which may have let go of them since
    finished.clear();
    warnings.new_step(request.dir);
}

copy_ptr session::find_copy(std::uint32_t rank, const copy_key& key) const {
    const auto worth = [](const shard_copy& c) { return std::pair(!c.overtaken, c.buffer >= 0); };
    copy_ptr found;
    for (const auto& c : copies)
        if (c->rank == rank && c->key == key && c->checked && (!found || worth(*c) >= worth(*found)))
            found = c;
    return found;
}

copy_ptr session::find_copy(agreement::shelf::id number) const {
    for (const auto& c : copies)
        if (c->number == number) return c;
    return nullptr;
}

copy_ptr session::copy_in(const rank_state& r, std::size_t buffer) const {
    for (const auto& c : copies)
        if (c->buffer == static_cast<int>(buffer) && c->memory->shares_with(r.memory.get())) return c;
    return nullptr;
}

std::optional<std::size_t> session::spare_buffer(const rank_state& r) const {
    if (!r.memory || (r.owner != 0 && !r.waits)) return std::nullopt;
    for (std::size_t i = 0; i < r.buffers; ++i)
        if (!copy_in(r, i)) return i;
    return std::nullopt;
}

void session::free_buffer(rank_state& r, std::size_t buffer, std::uint64_t sequence) {
    auto& header = r.header();
    header.buffer[buffer].released.store(sequence);
    wake(header);
}

void session::drop_copy(const copy_ptr& copy) {
    copy->overtaken = true;
    if (copy->pinned) return;
    copy->dropped = true;
    if (copy->buffer >= 0) {
        const auto it = ranks.find(copy->rank);
        if (it != ranks.end() && copy->memory->shares_with(it->second.memory.get()))
            free_buffer(it->second, static_cast<std::size_t>(copy->buffer), copy->sequence);
    } else if (copy->offset == 0) {
        free_replicas[copy->rank].push_back(copy->memory);
    }
    std::erase(copies, copy);
}

void session::lose_copy(const copy_ptr& copy) {
    agreed->lose(copy->number);
    copy->checked = false;  // while it is pinned it stays in the list
    drop_copy(copy);
}

void session::unpin(const copy_ptr& copy) {
    copy->pinned = false;
    if (copy->overtaken && !copy->dropped) drop_copy(copy);
}

void session::forget_ranks() {
    std::unordered_set<std::uint32_t> held, mine(own_ranks().begin(), own_ranks().end());
    for (const auto& c : copies) held.insert(c->rank);
    std::erase_if(ranks, [&](const auto& r) {
        return !mine.contains(r.first) && !held.contains(r.first) && r.second.owner == 0;
    });
    std::unordered_set<std::uint32_t> guests;
    for (const auto& n : request.nodes)
        if (slot && n.buddy == *slot) guests.insert(n.ranks.begin(), n.ranks.end());
    for (const auto& [generation_to_come, a] : announced) {
        const auto kept = ranks_kept_in(request, a);
        guests.insert(kept.begin(), kept.end());
    }
    std::erase_if(free_replicas, [&](const auto& r) { return !guests.contains(r.first); });
}

void session::publish() {
    // What an earlier launch had reached says nothing of the processes of this one.
    const bool begun = agreed->rules().has_begun();
    const auto shown = [&](const std::optional<copy_key>& key) { return begun ? word(key) : 0; };
    for (const auto rank : own_ranks()) {
        const auto it = ranks.find(rank);
        if (it == ranks.end() || !it->second.memory) continue;
        auto& header = it->second.header();
        bool news = header.stalled.exchange(stalled ? 1 : 0) != (stalled ? 1 : 0);
        const auto show = [&](shared_word& word, std::uint64_t value) {
            if (word.exchange(value) != value) news = true;
        };
        show(header.memory_step, shown(committed));
        show(header.replicated_step, shown(agreed->rules().committed(agreement::level::replicated)));
        show(header.durable_step, shown(durable));
        show(header.round, generation);
        show(header.seals_wanted, seals_wanted);
        if (news) wake(header);
    }
}

bool session::waits_for_others(clock::duration longest) const {
    const auto now = clock::now();
    const auto usual = std::min(commits.limit(commits_within), longest);
    return std::any_of(copies.begin(), copies.end(), [&](const auto& c) {
        if (!c->own || !c->checked || c->key.generation != generation || (committed && c->key <= *committed))
            return false;
        const bool waits = c->waits_since != clock::time_point{};
        return c->held_up || (waits && c->waits_since + (c->handled ? usual : longest) < now);
    });
}

void session::tell_user(const std::string& about, const std::string& text) {
    constexpr std::size_t most = 64;
    if (warnings.told.size() >= most || !warnings.told.insert(about).second) return;
    warnings.untold.emplace_back(about, text);
    tell_untold();
}

void session::tell_untold() {
    for (const auto rank : own_ranks()) {
        if (warnings.untold.empty()) return;
        const auto it = ranks.find(rank);
        if (it == ranks.end() || !it->second.memory || it->second.owner == 0) continue;
        auto& header = it->second.header();
        if (header.warnings_read.load() != header.warning_count.load()) continue;  // one at a time
        const auto text = std::move(warnings.untold.front().second);
        warnings.untold.erase(warnings.untold.begin());
        const auto n = std::min(text.size(), header.warning.size() - 1);
        std::memcpy(header.warning.data(), text.data(), n);
        header.warning[n] = '\0';
        header.warning_count.fetch_add(1);
    }
}

std::string session::take_untold() {
    std::string line;
    for (const auto& [about, text] : std::exchange(warnings.untold, {}))
        line += (line.empty() ? "" : "; ") + text;
    return line;
}

std::uint64_t session::memory_bytes() const {
    std::uint64_t sum = bytes_in_the_making;
    for (const auto* file : files_in(*this)) sum += file->size();
    return sum;
}

// Its files, the processes that live, and its record.
std::size_t descriptors_of(const session& s) {
    const auto lives = [](const auto& r) { return r.second.last && r.second.last->fd() >= 0; };
    return 1 + files_in(s).size() + static_cast<std::size_t>(std::ranges::count_if(s.ranks, lives));
}

std::uint64_t durable_lag(const session& s) {
    if (s.request.flush == 0 || !s.committed) return 0;
    const auto in_storage = s.durable ? s.durable->step : 0;
    return s.committed->step > in_storage ? s.committed->step - in_storage : 0;
}

nlohmann::json describe_key(const std::optional<copy_key>& key) {
    if (!key) return nullptr;
    return {{"step", key->step}, {"generation", key->generation}};
}

namespace {

// What the rank has said of itself last; null where it has not.
nlohmann::json describe_heartbeat(const rank_state& r) {
    if (!r.memory) return nullptr;
    const auto at = standing_of(r.header().rank_beat, 0, clock::now());
    if (!at) return nullptr;
    return {{"step", at->step},
            {"phase", at->phase == phase_of_saves ? nlohmann::json() : nlohmann::json(at->phase)},
            {"age_ms", static_cast<std::uint64_t>(at->since.count())}};
}

}  // namespace

nlohmann::json describe(const session& s) {
    nlohmann::json ranks = nlohmann::json::array(), replicas = nlohmann::json::array();
    for (const auto& [rank, r] : s.ranks) {
        nlohmann::json steps = nlohmann::json::array();
        for (const auto& c : s.copies)
            if (c->rank == rank && c->buffer >= 0) steps.push_back(c->key.step);
        ranks.push_back(
            {{"rank", rank}, {"attached", r.owner != 0}, {"buffer_bytes", r.buffer_bytes}, {"steps", steps}});
        if (auto beat = describe_heartbeat(r); !beat.is_null()) ranks.back()["heartbeat"] = std::move(beat);
    }
    for (const auto& c : s.copies)
        if (c->buffer < 0)
            replicas.push_back({{"rank", c->rank}, {"step", c->key.step}, {"bytes", c->bytes}});
    const auto& b = s.bytes;
    nlohmann::json counters{{"storage_bytes_written", b.storage_written.load()},
                            {"storage_bytes_read", b.storage_read.load()},
                            {"peer_bytes_sent", b.peer_sent.load()},
                            {"peer_bytes_received", b.peer_received.load()},
                            {"memory_bytes_restored", b.memory_restored.load()},
                            {"seals", b.seals.load()},
                            {"commits", b.commits.load()},
                            {"torn", b.torn.load()},
                            {"damaged", b.damaged()},
                            {"damaged_memory", b.damaged_here.load()},
                            {"damaged_arrival", b.damaged_on_arrival.load()},
                            {"damaged_storage", b.damaged_in_storage.load()},
                            {"refused", b.refused.load()},
                            {"skipped", b.skipped.load()},
                            {"deaths", b.deaths.load()},
                            {"flushes", b.flushes.load()},
                            {"flush_failures", b.flush_failures.load()},
                            {"flushes_skipped", b.flushes_skipped.load()}};
    nlohmann::json nodes = nlohmann::json::array();
    for (const auto& n : s.request.nodes) nodes.push_back(n.name);
    nlohmann::json out{{"job", s.job()},
                       {"restart", s.request.restart},
                       {"uid", s.request.uid},
                       {"generation", s.generation},
                       {"state", s.ending     ? "ending"
                                 : s.detached ? "detached"
                                              : "open"},
                       {"node", s.self()},
                       {"world", s.request.world},
                       {"nodes", nodes},
                       {"memory_bytes", s.memory_bytes()},
                       {"committed", describe_key(s.committed)},
                       {"replicated", s.committed_replicated},
                       {"durable", describe_key(s.durable)},
                       {"durable_lag_steps", durable_lag(s)},
                       {"pending", s.pending},
                       {"stalled", s.stalled},
                       {"ranks", ranks},
                       {"replicas", replicas},
                       {"warning", s.warnings.newest},
                       {"warnings", s.warnings.count},
                       {"counters", counters}};
    if (!s.state.empty()) out["name"] = s.state;
    if (!s.states.empty()) {
        auto& states = out["states"] = nlohmann::json::array();
        for (const auto& [name, one] : s.states) states.push_back(describe(*one));
    }
    if (const auto& h = s.hung; h.found && clock::now() < h.until)
        out["hung"] = {{"ranks", h.found->ranks},
                       {"step", h.found->step},
                       {"why", h.found->why},
                       {"text", in_words(s, *h.found)}};
    out["slot"] = s.slot ? nlohmann::json(*s.slot) : nlohmann::json(nullptr);
    return out;
}

}  // namespace banyan::ckpt
