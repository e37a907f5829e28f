// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/client.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <banyan/ckpt.h>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ckptd/buffers/copy.hpp"
#include "ckptd/client/device.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

using clock = std::chrono::steady_clock;
constexpr std::chrono::seconds retry_every{10};
constexpr std::chrono::minutes restore_timeout{10};  // until all ranks can have their state
constexpr std::chrono::minutes answer_timeout{2};    // one answer; the daemon may have to fill a buffer first
constexpr std::chrono::seconds drain_timeout{65};
constexpr std::chrono::seconds comeback_timeout{5};  // of a daemon that its keeper starts again
constexpr std::chrono::milliseconds comeback_pause{10};

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

result<std::uint64_t> number_or(const char* given, bool use_given, const char* variable, std::uint64_t max) {
    const auto text = use_given ? std::string(given) : environment(variable);
    const auto n = parse_number(text, max);
    if (!n)
        return fail(errc::invalid_input,
                    fmt::format("{} \"{}\" is not a number", use_given ? "the argument" : variable, text));
    return n;
}

int code_of(const error& e) {
    switch (e.code) {
        case errc::exhausted:
            return BCK_E_MEMORY;
        case errc::not_found:
            return BCK_E_NODAEMON;
        default:
            return BCK_E_REFUSED;
    }
}

// Sleeps until the daemon changes something in the header, or a short time has passed. The header need not be
// there any more: the kernel then says so at once.
void wait_for_change(rank_memory_header& header, std::uint32_t seen, std::chrono::milliseconds at_most) {
    const timespec time{at_most.count() / 1000, (at_most.count() % 1000) * 1'000'000};
    ::syscall(SYS_futex, &header.event, FUTEX_WAIT, seen, &time, nullptr, 0);
}

outcome read(std::span<const std::byte> image, std::uint64_t step, std::uint32_t rank,
             image_contents* contents) {
    auto found = read_image(image);
    if (!found) return {BCK_E_LAYOUT, found.error().text()};
    if (found->step != step || found->rank != rank)
        return {BCK_E_LAYOUT, fmt::format("the shard says step {}, rank {}, expected {} and {}", found->step,
                                          found->rank, step, rank)};
    *contents = std::move(*found);
    return {};
}

void say(const rank_name& who, std::string_view text) {
    const auto of = who.state.empty() ? std::string() : fmt::format("state {}: ", who.state);
    std::fprintf(stderr, "banyan: %s%s\n", of.c_str(), printable(text).c_str());
}

outcome fill(std::byte* buffer, std::uint64_t step, region_table& table) {
    auto& head = table.header();
    put_step(head.text.data() + head.step_at, step);
    std::memcpy(buffer, head.text.data(), head.text.size());
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto& r = table.at(i);
        const auto& from = table.place_of(i);
        if (!from.on_device) {
            copy_state(buffer + r.offset, static_cast<const std::byte*>(from.ptr), r.bytes);
        } else if (auto copied = device::copy_to_host(buffer + r.offset, from.ptr, r.bytes); !copied) {
            return {BCK_E_DEVICE, fmt::format("region \"{}\": {}", r.name, copied.error().text())};
        }
    }
    return {};
}

// The image that the daemon has put into a buffer.
outcome find_image(const connection& of, const nlohmann::json& reply, std::uint64_t step,
                   std::span<std::byte>* image) {
    const json_fields in(reply);
    const auto buffer = in.number("buffer", of.buffers() - 1);
    const auto bytes = in.number("bytes", of.buffer_bytes());
    const auto found = in.number("step", max_step);
    if (!buffer || !bytes || !found || *found != step)
        return {BCK_E_REFUSED, "the daemon's answer makes no sense"};
    *image = {of.buffer(*buffer), *bytes};
    return {};
}

outcome forked() {
    return {BCK_E_INVALID, "this process was forked: it may use the library after a bck_init of its own"};
}

}  // namespace

// What a thread of the parent's holds at fork() nobody lets go of in the child: nothing is waited for there.
outcome client::take_turn(std::unique_lock<std::mutex>& turn) {
    turn = std::unique_lock(lock_, std::defer_lock);
    if (pid_ == ::getpid())
        turn.lock();
    else if (!turn.try_lock())
        return forked();
    return {};
}

outcome client::usable() const {
    if (!initialised_)
        return {BCK_E_INVALID,
                who_.state.empty() ? "bck_init was not called" : "the state is not open: bck_open"};
    if (pid_ != ::getpid()) return forked();
    return {};
}

outcome client::init(const char* job, int rank, int world) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    const bool job_given = job && *job && std::strcmp(job, "0") != 0;
    const auto rank_text = std::to_string(rank), world_text = std::to_string(world);
    const auto j = number_or(job, job_given, "BANYAN_JOB", UINT64_MAX);
    const auto r = number_or(rank_text.c_str(), rank >= 0, "RANK", 1'048'575);
    const auto w = number_or(world_text.c_str(), world > 0, "WORLD_SIZE", 1'048'576);
    if (pid_.exchange(::getpid()) != ::getpid()) forget_steps();
    initialised_ = true;
    detach();
    next_try_ = {};
    socket_ = environment("BANYAN_CKPT_SOCKET");
    if (socket_.empty())
        return off({errc::not_found, "BANYAN_CKPT_SOCKET is not set", "submit the job with --train-ckpt"});
    if (!j || !r || !w) {
        socket_.clear();
        const auto& e = !j ? j.error() : !r ? r.error() : w.error();
        off(e);
        return {BCK_E_INVALID, e.text()};
    }
    if (*r >= *w) {
        socket_.clear();
        return {BCK_E_INVALID, fmt::format("rank {} is not below the world size {}", *r, *w)};
    }
    rank_name now{*j, {}, static_cast<std::uint32_t>(*r), static_cast<std::uint32_t>(*w), {}};
    if (const auto step = parse_number(environment("BANYAN_STEP"), UINT32_MAX - 1))
        now.step = static_cast<std::uint32_t>(*step);
    become(now);
    if (const auto wait_ms = parse_number(environment("BANYAN_CKPT_WAIT_MS"), 3'600'000))
        buffer_timeout_ = std::chrono::milliseconds(*wait_ms);
    return reach(true);
}

outcome client::protect(const bck_tensor& region) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    return regions_.add(region);
}

outcome client::unprotect(const char* name) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    return regions_.withdraw(name);
}

outcome client::open(client& of, const std::string& state) {
    std::unique_lock<std::mutex> turn, turn_of_that;
    if (auto r = of.take_turn(turn_of_that); r.code != 0) return r;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (auto r = of.usable(); r.code != 0) return r;
    if (initialised_) return {};
    if (pid_.exchange(of.pid_) != of.pid_) forget_steps();
    auto now = of.who_;
    now.state = state;
    become(now);
    socket_ = of.socket_;
    off_because_ = of.off_because_;
    buffer_timeout_ = of.buffer_timeout_;
    next_try_ = {};
    initialised_ = true;
    return {};
}

// What another rank has saved is not this one's.
void client::become(const rank_name& who) {
    if (who.job != who_.job || who.rank != who_.rank || who.world != who_.world) forget_steps();
    who_ = who;
}

void client::forget_steps() {
    sealed_ = 0;
    saved_.reset();
    has_saved_ = false;
    has_begun_ = false;
    must_restart_ = false;
    unanswered_ = false;
}

void client::detach() {
    if (pinned_ && connection_.attached()) device::unpin(connection_.base(), connection_.mapped_bytes());
    pinned_ = false;
    connection_.close();
}

// The daemon is missing or dead: training goes on, the user is told once. What other ranks lack the leader's
// daemon tells; what the prolog knew before is told already.
outcome client::off(const error& e) {
    static bool told = false;
    pass_over();
    detach();
    next_try_ = clock::now() + retry_every;
    const auto known = environment("BANYAN_CKPT_OFF");
    off_because_ = known.empty() ? e.text() : known;
    auto& of_this_state = who_.state.empty() ? told : told_off_;
    if (who_.rank == 0 && known.empty() && !std::exchange(of_this_state, true))
        say(who_, fmt::format("checkpoints are off: {}", off_because_));
    return {BCK_E_NODAEMON, off_because_};
}

// Of one that is being started again nobody listens for a moment, or the socket is not there yet.
bool client::may_come(const error& e) const {
    if (!environment("BANYAN_CKPT_OFF").empty()) return false;
    if (e.code != errc::not_found) return e.code == errc::unavailable;
    return connection_.is_kept() || ::access((socket_ + ".lock").c_str(), F_OK) == 0;
}

result<void> client::connect(clock::time_point until) {
    for (;;) {
        auto opened = connection_.open(socket_);
        if (opened || !may_come(opened.error()) || clock::now() >= until) return opened;
        std::this_thread::sleep_for(comeback_pause);
    }
}

result<void> client::attach_anew(std::uint64_t bytes, bool populate) {
    const auto until = clock::now() + comeback_timeout;
    for (;;) {
        detach();
        BANYAN_CHECK(connect(until));
        auto back = attach(bytes, populate);
        // It may have ended once more meanwhile.
        if (back || back.error().code != errc::unavailable || clock::now() >= until) return back;
        std::this_thread::sleep_for(comeback_pause);
    }
}

// A daemon whose memory is kept is there again in a moment; what was saved is, too.
outcome client::come_back() {
    constexpr auto ended = "the checkpoint daemon has ended";
    if (!connection_.is_kept()) return off({errc::unavailable, ended, ""});
    const auto back = attach_anew(connection_.buffer_bytes(), true);
    if (back) return {};
    if (!connection_.is_open() || back.error().code == errc::unavailable)
        return off({errc::unavailable, ended, "its keeper did not start it again"});
    off(back.error());
    return {code_of(back.error()), off_because_};
}

outcome client::reach(bool asks) {
    if (auto r = usable(); r.code != 0) return r;
    if (connection_.attached()) return {};
    if (socket_.empty()) return {BCK_E_NODAEMON, off_because_};
    if (connection_.is_open()) return {};
    if (!asks && clock::now() < next_try_) return {BCK_E_NODAEMON, off_because_};
    const auto until = clock::now() + (asks ? comeback_timeout : comeback_timeout.zero());
    if (auto opened = connect(until); !opened) return off(opened.error());
    return {};
}

outcome client::attach_for(std::uint64_t bytes, bool populate) {
    if (connection_.attached() && bytes <= connection_.buffer_bytes()) return {};
    // A state may grow just after its daemon was started again.
    if (connection_.attached() && !connection_.alive()) {
        if (auto r = come_back(); r.code != 0) return r;
    }
    if (pinned_) device::unpin(connection_.base(), connection_.mapped_bytes());
    pinned_ = false;
    auto attached = attach(bytes, populate);
    // It has ended since this process connected to it.
    if (!attached && !connection_.alive()) attached = attach_anew(bytes, populate);
    if (!attached) {
        const bool is_there = connection_.is_open();
        auto out = off(attached.error());
        if (is_there) out.code = code_of(attached.error());
        return out;
    }
    return {};
}

result<void> client::attach(std::uint64_t bytes, bool populate) {
    BANYAN_TRY(const auto warning, connection_.attach(who_, bytes, populate));
    warnings_seen_ = connection_.header().warning_count.load();
    connection_.header().warnings_read.store(warnings_seen_);
    if (!warning.empty()) say(who_, warning);
    return {};
}

void client::pin(const region_table& table) {
    const auto* on_gpu = table.on_a_device();
    if (!on_gpu || pinned_) return;
    device::pin(connection_.base(), connection_.mapped_bytes(), on_gpu);
    pinned_ = true;
}

outcome client::ready(const given_regions& given, region_table** table, bool asks) {
    *table = &regions_;
    if (given && !given->data() && !given->empty()) return {BCK_E_INVALID, "tensors is NULL"};
    if (!given && usable().code == 0 && regions_.empty()) return {BCK_E_INVALID, "no region is protected"};
    if (auto r = reach(asks); r.code != 0) return r;
    if (given)
        if (auto r = given_.find(*given, regions_, table); r.code != 0) return r;
    if (auto made = (*table)->make_header(who_.job, who_.rank, who_.world); !made)
        return {BCK_E_INVALID, made.error().text()};
    if (auto r = attach_for((*table)->header().image_bytes, !asks); r.code != 0) return r;
    if (!asks) pin(**table);
    return {};
}

bool client::is_behind() const {
    return must_restart_ || unanswered_ || connection_.header().round.load() != connection_.generation();
}

outcome client::behind() const {
    return {BCK_E_BEHIND,
            unanswered_
                ? "this process has asked for its state and was not told it: bck_restart brings it, or says "
                  "that there is none"
                : "the ranks went back to an older step, because one of them was started again or asked "
                  "for its state: bck_restart brings this one there"};
}

// Whoever has begun has had its answer before.
outcome client::heard(outcome answer) {
    if (answer.code == BCK_E_NOTFOUND) {
        has_begun_ = true;
        unanswered_ = false;
    } else if (answer.code != BCK_OK && !has_begun_) {
        unanswered_ = true;
    }
    return answer;
}

int client::free_buffer() {
    const auto until = clock::now() + buffer_timeout_;
    auto& header = connection_.header();
    for (;;) {
        const auto seen = header.event.load();
        for (std::uint32_t i = 0; i < connection_.buffers(); ++i)
            if (buffer_is_free(header.buffer[i])) return static_cast<int>(i);
        if (clock::now() >= until || header.stalled.load() != 0 || is_behind() || !connection_.alive())
            return -1;
        wait_for_change(header, seen, std::chrono::milliseconds(20));
    }
}

void client::tell_warning() {
    auto& header = connection_.header();
    const auto count = header.warning_count.load();
    if (count == warnings_seen_) return;
    warnings_seen_ = count;
    std::array<char, 512> text = header.warning;
    text.back() = '\0';
    header.warnings_read.store(count);
    say(who_, text.data());
}

outcome client::checkpoint(std::uint64_t step, given_regions given) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (step > max_step) return {BCK_E_INVALID, fmt::format("step {} is above {}", step, max_step)};
    if (saved_ && step <= *saved_)
        return {BCK_E_INVALID,
                fmt::format("step {} is not above step {}, which is saved already", step, *saved_)};
    saving_ = step;
    auto out = save(step, given);
    if (out.code != 0 && out.code != BCK_E_BEHIND) pass_over();
    saving_.reset();
    return out;
}

// So that the others do not wait for this rank's shard.
void client::pass_over() {
    const auto step = std::exchange(saving_, std::nullopt);
    if (step && connection_.attached()) connection_.post(message::skipped, "step", *step);
}

outcome client::save(std::uint64_t step, const given_regions& given) {
    region_table* table = nullptr;
    if (auto r = ready(given, &table); r.code != 0) return r;
    if (!connection_.alive())
        if (auto r = come_back(); r.code != 0) return r;
    if (is_behind()) return behind();
    int buffer = free_buffer();
    if (buffer < 0 && !connection_.alive()) {
        if (auto r = come_back(); r.code != 0) return r;
        buffer = free_buffer();
    }
    if (buffer < 0 && is_behind()) return behind();
    if (buffer < 0) {
        tell_warning();
        if (connection_.header().stalled.load() != 0)
            return {BCK_E_BUSY,
                    fmt::format("every buffer waits for other nodes: the save of step {} is skipped", step)};
        return {BCK_E_BUSY, fmt::format("no buffer came free in {} ms: the save of step {} is skipped",
                                        buffer_timeout_.count(), step)};
    }
    auto& head = connection_.header().buffer[static_cast<std::size_t>(buffer)];
    begin_write(head);
    if (auto filled = fill(connection_.buffer(static_cast<std::size_t>(buffer)), step, *table);
        filled.code != 0)
        return filled;
    end_write(head, step, connection_.generation(), table->header().image_bytes);
    saving_.reset();
    // One that is started again looks for what was sealed meanwhile.
    if (!connection_.post(message::sealed, "buffer", static_cast<std::uint64_t>(buffer)))
        if (auto r = come_back(); r.code != 0) return r;
    sealed_ = step + 1;
    saved_ = step;
    has_saved_ = true;
    has_begun_ = true;
    tell_warning();
    return {};
}

outcome client::wait(std::uint64_t step, int level, int timeout_ms) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    if (level < BCK_SEALED || level > BCK_DURABLE)
        return {BCK_E_INVALID, fmt::format("there is no level {}", level)};
    if (step > max_step) return {BCK_E_INVALID, fmt::format("step {} is above {}", step, max_step)};
    const auto until =
        timeout_ms < 0 ? clock::time_point::max() : clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
        // Another thread may have called anything meanwhile.
        if (auto r = usable(); r.code != 0) return r;
        if (!connection_.attached()) return {BCK_E_NODAEMON, off_because_};
        auto& header = connection_.header();
        const auto seen = header.event.load();
        const std::uint64_t reached = level == BCK_SEALED       ? sealed_
                                      : level == BCK_MEMORY     ? header.memory_step.load()
                                      : level == BCK_REPLICATED ? header.replicated_step.load()
                                                                : header.durable_step.load();
        if (is_behind()) return behind();
        if (reached >= step + 1) return {};
        if (clock::now() >= until)
            return {BCK_E_TIMEOUT,
                    fmt::format("step {} did not become that safe in {} ms", step, timeout_ms)};
        if (!connection_.alive()) {
            if (auto r = come_back(); r.code != 0) return r;
            continue;
        }
        // What is waited for may be another thread's save.
        turn.unlock();
        wait_for_change(header, seen, std::chrono::milliseconds(20));
        turn.lock();
    }
}

outcome client::ask(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                    nlohmann::json* reply, const std::function<void()>& meanwhile) {
    auto answer = connection_.call(type, meta, timeout, meanwhile);
    if (!answer && !connection_.alive()) {
        if (auto r = come_back(); r.code != 0) return r;
        answer = connection_.call(type, meta, timeout, meanwhile);
    }
    if (!answer && answer.error().code == errc::unavailable && connection_.alive()) {
        const auto in_vain = std::chrono::duration_cast<std::chrono::seconds>(timeout).count();
        auto out = off(
            {errc::unavailable, fmt::format("the checkpoint daemon has not answered for {} s", in_vain), ""});
        out.code = BCK_E_TIMEOUT;
        return out;
    }
    if (!answer) return off(answer.error());
    if (auto refused = wire::error_from(*answer)) return {code_of(*refused), refused->text()};
    *reply = std::move(*answer);
    return {};
}

// No rank gets its state before all can. Rank 0 says what is waited for, once for each reason.
outcome client::ask_for_state(bool test, nlohmann::json* reply, const region_table& into) {
    // Until a rank waits for its state the daemon brings that into memory of its own, and copies it later: so
    // it is asked first, and the rank's mapping made ready while it works.
    const auto make_ready = [&] {
        connection_.populate();
        pin(into);
    };
    const auto until = clock::now() + restore_timeout;
    nlohmann::json meta = nlohmann::json::object();
    if (test) meta["test"] = true;
    std::string said;
    for (;;) {
        if (auto asked = ask(message::restore, meta, answer_timeout, reply, make_ready); asked.code != 0) {
            if (connection_.attached()) tell_warning();  // it may say why
            return asked;
        }
        const bool was_behind = is_behind();
        if (const auto generation = json_fields(*reply).number("generation"))
            connection_.set_generation(*generation);
        const auto why = json_fields(*reply).text("waits");
        if (!why) {
            // There is nothing to go back to: what was saved before is of a history that is over.
            if (!json_fields(*reply).has("step") && (!test || was_behind)) forget_steps();
            return {};
        }
        if (who_.rank == 0 && *why != said) say(who_, *why);
        said = *why;
        if (clock::now() >= until) return {BCK_E_TIMEOUT, *why};
    }
}

outcome client::restart_test(std::uint64_t* step) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    return heard(find(step));
}

outcome client::find(std::uint64_t* step) {
    if (!step) return {BCK_E_INVALID, "step is NULL"};
    region_table* table = nullptr;
    if (auto r = regions_.empty() ? reach(true) : ready({}, &table, true); r.code != 0) return r;
    if (auto r = attach_for(0); r.code != 0) return r;
    nlohmann::json reply;
    if (auto asked = ask_for_state(true, &reply, regions_); asked.code != 0) return asked;
    const auto found = json_fields(reply).number("step", max_step);
    if (!found) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
    *step = *found;
    return {};
}

outcome client::stat(image_contents* found) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    return heard(look(found));
}

outcome client::look(image_contents* found) {
    if (auto r = reach(true); r.code != 0) return r;
    // The daemon would take all ranks back, as it does at bck_restart.
    if (has_saved_)
        return {BCK_E_INVALID,
                "this process has saved since: bck_stat comes before the first bck_checkpoint"};
    if (auto r = attach_for(0); r.code != 0) return r;
    nlohmann::json reply;
    if (auto asked = ask_for_state(true, &reply, regions_); asked.code != 0) return asked;
    const auto step = json_fields(reply).number("step", max_step);
    if (!step) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
    const auto bytes = json_fields(reply).number("bytes", 1ull << 48).value_or(0);
    if (auto r = attach_for(bytes); r.code != 0) return r;
    // Whoever has only looked has not gone back.
    must_restart_ = is_behind();
    const auto before = connection_.generation();
    if (auto asked = ask_for_state(false, &reply, regions_); asked.code != 0) return asked;
    must_restart_ = must_restart_ || before != connection_.generation();
    std::span<std::byte> image;
    if (auto r = find_image(connection_, reply, *step, &image); r.code != 0) return r;
    return read(image, *step,
                static_cast<std::uint32_t>(json_fields(reply).number("of", 1'048'575).value_or(who_.rank)),
                found);
}

outcome client::take(std::span<std::byte> image, std::uint64_t step, std::optional<std::uint32_t> of,
                     const region_table& table) {
    image_contents contents;
    if (auto r = read(image, step, of.value_or(who_.rank), &contents); r.code != 0) return r;
    std::vector<std::uint64_t> offsets;
    if (auto found = table.find_in(contents, &offsets, of.has_value()); found.code != 0) return found;
    for (std::size_t i = 0; i < table.size(); ++i) {
        const auto* from = image.data() + offsets[i];
        const auto& r = table.at(i);
        const auto& to = table.place_of(i);
        if (!to.on_device) {
            copy_state(static_cast<std::byte*>(to.ptr), from, r.bytes);
        } else if (auto copied = device::copy_from_host(to.ptr, from, r.bytes); !copied) {
            return {BCK_E_DEVICE, fmt::format("region \"{}\": {}", r.name, copied.error().text())};
        }
    }
    return {};
}

outcome client::restart(std::uint64_t* step, int* source, given_regions given) {
    std::unique_lock<std::mutex> turn;
    if (auto r = take_turn(turn); r.code != 0) return r;
    has_begun_ = false;
    unanswered_ = true;  // also where memory runs out
    return heard(bring(step, source, given));
}

outcome client::bring(std::uint64_t* step, int* source, const given_regions& given) {
    if (source) *source = BCK_FROM_NONE;
    region_table* table = nullptr;
    if (auto r = ready(given, &table, true); r.code != 0) return r;
    nlohmann::json reply;
    if (auto asked = ask_for_state(false, &reply, *table); asked.code != 0) return asked;
    const auto found = json_fields(reply).number("step", max_step);
    if (!found) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
    // The round is entered, but until its state is brought this process does not train in it.
    must_restart_ = must_restart_ || std::exchange(has_saved_, false);
    std::span<std::byte> image;
    if (auto r = find_image(connection_, reply, *found, &image); r.code != 0) return r;
    std::optional<std::uint32_t> of;
    if (const auto rank = json_fields(reply).number("of", 1'048'575)) of = static_cast<std::uint32_t>(*rank);
    if (auto taken = take(image, *found, of, *table); taken.code != 0) return taken;
    sealed_ = *found + 1;
    saved_.reset();
    must_restart_ = false;
    unanswered_ = false;
    has_begun_ = true;
    if (step) *step = *found;
    const auto from = json_fields(reply).text("source").value_or("");
    if (source)
        *source = from == "local" ? BCK_FROM_LOCAL : from == "peer" ? BCK_FROM_PEER : BCK_FROM_STORAGE;
    return {};
}

outcome client::finalize(bool drain, const std::function<void()>& meanwhile) {
    bool done = false;
    const auto once = [&] {
        if (meanwhile && !std::exchange(done, true)) meanwhile();
    };
    std::unique_lock<std::mutex> turn;
    outcome out = take_turn(turn);
    if (out.code != 0) {
        once();
        return out;
    }
    if (drain && pid_ == ::getpid() && connection_.attached()) {
        nlohmann::json reply;
        out = ask(message::finalize, {{"drain", true}}, drain_timeout, &reply, once);
        if (out.code == BCK_E_TIMEOUT) out.text += ": the newest step may not be in storage";
        if (const json_fields in(reply); out.code == 0 && in.has("not_stored"))
            out = {BCK_E_TIMEOUT, in.text("not_stored").value_or("the newest step is not in storage")};
        if (connection_.attached()) tell_warning();
    } else if (pid_ == ::getpid() && connection_.attached()) {
        // So that what comes next is no rank's death. The answer is not waited for.
        connection_.post(message::finalize, "drain", 0);
    }
    once();
    detach();
    initialised_ = false;
    regions_.clear();
    given_.clear();
    sealed_ = 0;
    saved_.reset();
    return out;
}

}  // namespace banyan::ckpt
