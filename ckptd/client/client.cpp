// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/client/client.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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
constexpr std::chrono::minutes restore_timeout{10};
constexpr std::chrono::seconds drain_timeout{65};
constexpr std::size_t max_regions = 1'000'000;

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

// Sleeps until the daemon changes something in the header, or a short time has passed.
void wait_for_change(rank_memory_header& header, std::uint32_t seen, std::chrono::milliseconds at_most) {
    const timespec time{at_most.count() / 1000, (at_most.count() % 1000) * 1'000'000};
    ::syscall(SYS_futex, &header.event, FUTEX_WAIT, seen, &time, nullptr, 0);
}

}  // namespace

outcome client::init(const char* job, int rank, int world) {
    const std::scoped_lock held(lock_);
    const bool job_given = job && *job && std::strcmp(job, "0") != 0;
    const auto rank_text = std::to_string(rank), world_text = std::to_string(world);
    const auto j = number_or(job, job_given, "BANYAN_JOB", UINT64_MAX);
    const auto r = number_or(rank_text.c_str(), rank >= 0, "RANK", 1'048'575);
    const auto w = number_or(world_text.c_str(), world > 0, "WORLD_SIZE", 1'048'576);
    pid_ = ::getpid();
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
    job_ = *j;
    rank_ = static_cast<std::uint32_t>(*r);
    world_ = static_cast<std::uint32_t>(*w);
    if (const auto wait_ms = parse_number(environment("BANYAN_CKPT_WAIT_MS"), 3'600'000))
        buffer_timeout_ = std::chrono::milliseconds(*wait_ms);
    if (auto opened = connection_.open(socket_); !opened) return off(opened.error());
    return {};
}

outcome client::protect(const char* name, void* ptr, std::size_t bytes, const char* dtype,
                        const std::uint64_t* shape, int ndim) {
    const std::scoped_lock held(lock_);
    const auto bad = [](const char* what) { return outcome{BCK_E_INVALID, what}; };
    if (!name || !*name || std::strlen(name) > 512 || std::strncmp(name, "__", 2) == 0)
        return bad("a region's name has 1 to 512 bytes and does not begin with \"__\"");
    if (!dtype || dtype_bytes(dtype) == 0)
        return bad("unknown dtype; known are F64 F32 F16 BF16 F8_E4M3 F8_E5M2 I64 ... U8 BOOL");
    if (ndim < 0 || ndim > 16 || (ndim > 0 && !shape) || (!ptr && bytes != 0))
        return bad("ptr, shape or ndim is wrong");
    region r{name, dtype, std::vector<std::uint64_t>(shape, shape + ndim), bytes, 0};
    std::uint64_t size = dtype_bytes(dtype);
    for (const auto extent : r.shape)
        if (__builtin_mul_overflow(size, extent, &size)) return bad("the shape overflows");
    if (size != bytes)
        return {BCK_E_INVALID,
                fmt::format("region \"{}\" has {} bytes, but its shape and dtype say {}", name, bytes, size)};
    const auto known =
        std::find_if(regions_.begin(), regions_.end(), [&](const auto& x) { return x.name == r.name; });
    const place where{ptr, bytes != 0 && device::owns(ptr)};
    if (known != regions_.end()) {
        const auto i = static_cast<std::size_t>(known - regions_.begin());
        if (known->bytes != r.bytes || known->dtype != r.dtype || known->shape != r.shape)
            layout_changed_ = true;
        r.offset = known->offset;
        *known = std::move(r);
        places_[i] = where;
        return {};
    }
    if (regions_.size() >= max_regions) return bad("too many regions");
    regions_.push_back(std::move(r));
    places_.push_back(where);
    layout_changed_ = true;
    return {};
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
    detach();
    next_try_ = clock::now() + retry_every;
    const auto known = environment("BANYAN_CKPT_OFF");
    off_because_ = known.empty() ? e.text() : known;
    if (rank_ == 0 && known.empty() && !std::exchange(told, true))
        std::fprintf(stderr, "banyan: checkpoints are off: %s\n", printable(off_because_).c_str());
    return {BCK_E_NODAEMON, off_because_};
}

outcome client::ready() {
    if (!initialised_) return {BCK_E_INVALID, "bck_init was not called"};
    if (pid_ != ::getpid()) return {BCK_E_INVALID, "after fork() only the parent may use the library"};
    if (regions_.empty()) return {BCK_E_INVALID, "no region is protected"};
    if (connection_.attached() && !layout_changed_) return {};
    if (socket_.empty()) return {BCK_E_NODAEMON, off_because_};
    if (!connection_.is_open()) {
        if (clock::now() < next_try_) return {BCK_E_NODAEMON, off_because_};
        if (auto opened = connection_.open(socket_); !opened) return off(opened.error());
    }
    auto image = make_image_header(regions_, job_, rank_, world_);
    if (!image) return {BCK_E_INVALID, image.error().text()};
    image_ = std::move(*image);
    if (connection_.attached() && image_.image_bytes <= connection_.buffer_bytes()) {
        layout_changed_ = false;
        return {};
    }
    if (pinned_) device::unpin(connection_.base(), connection_.mapped_bytes());
    pinned_ = false;
    auto attached = connection_.attach(job_, rank_, world_, image_.image_bytes);
    if (!attached) {
        const auto code = code_of(attached.error());
        off(attached.error());
        return {code, off_because_};
    }
    layout_changed_ = false;
    warnings_seen_ = connection_.header().warning_count.load();
    if (!attached->empty()) std::fprintf(stderr, "banyan: %s\n", printable(*attached).c_str());
    const auto on_gpu =
        std::find_if(places_.begin(), places_.end(), [](const auto& p) { return p.on_device; });
    if (on_gpu != places_.end()) {
        device::pin(connection_.base(), connection_.mapped_bytes(), on_gpu->ptr);
        pinned_ = true;
    }
    return {};
}

bool client::daemon_gone() const { return !connection_.alive(); }

int client::free_buffer() {
    const auto until = clock::now() + buffer_timeout_;
    auto& header = connection_.header();
    bool asked = false;
    for (;;) {
        const auto seen = header.event.load();
        for (std::uint32_t i = 0; i < connection_.buffers(); ++i)
            if (buffer_is_free(header.buffer[i])) return static_cast<int>(i);
        const auto now = clock::now();
        if (now >= until && asked) return -1;
        if (now >= until) {
            // The last resort: the daemon gives up what can no longer become complete.
            asked = true;
            if (!connection_.post(message::stuck, 0)) return -1;
            wait_for_change(header, seen, std::chrono::milliseconds(100));
            continue;
        }
        if (daemon_gone()) return -1;
        wait_for_change(header, seen, std::chrono::milliseconds(20));
    }
}

outcome client::fill(std::byte* buffer, std::uint64_t step) {
    put_step(image_.text.data() + image_.step_at, step);
    std::memcpy(buffer, image_.text.data(), image_.text.size());
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        const auto& r = regions_[i];
        if (!places_[i].on_device) {
            copy_state(buffer + r.offset, static_cast<const std::byte*>(places_[i].ptr), r.bytes);
        } else if (auto copied = device::copy_to_host(buffer + r.offset, places_[i].ptr, r.bytes); !copied) {
            return {BCK_E_DEVICE, fmt::format("region \"{}\": {}", r.name, copied.error().text())};
        }
    }
    return {};
}

void client::tell_warning() {
    auto& header = connection_.header();
    const auto count = header.warning_count.load();
    if (count == warnings_seen_) return;
    warnings_seen_ = count;
    std::array<char, 512> text = header.warning;
    text.back() = '\0';
    std::fprintf(stderr, "banyan: %s\n", printable(text.data()).c_str());
}

outcome client::checkpoint(std::uint64_t step) {
    const std::scoped_lock held(lock_);
    if (step > max_step) return {BCK_E_INVALID, fmt::format("step {} is above {}", step, max_step)};
    if (auto r = ready(); r.code != 0) return r;
    const int buffer = free_buffer();
    if (buffer < 0 && daemon_gone()) return off({errc::unavailable, "the checkpoint daemon has ended", ""});
    if (buffer < 0)
        return {BCK_E_BUSY, fmt::format("no buffer came free in {} ms: the save of step {} is skipped",
                                        buffer_timeout_.count(), step)};
    auto& head = connection_.header().buffer[static_cast<std::size_t>(buffer)];
    begin_write(head);
    if (auto filled = fill(connection_.buffer(static_cast<std::size_t>(buffer)), step); filled.code != 0)
        return filled;
    end_write(head, step, connection_.generation(), image_.image_bytes);
    if (!connection_.post(message::sealed, static_cast<std::uint64_t>(buffer)))
        return off({errc::unavailable, "the checkpoint daemon has ended", ""});
    sealed_ = step + 1;
    tell_warning();
    return {};
}

outcome client::wait(std::uint64_t step, int level, int timeout_ms) {
    const std::scoped_lock held(lock_);
    if (level < BCK_SEALED || level > BCK_DURABLE)
        return {BCK_E_INVALID, fmt::format("there is no level {}", level)};
    if (!connection_.attached()) return {BCK_E_NODAEMON, off_because_};
    auto& header = connection_.header();
    const auto until =
        timeout_ms < 0 ? clock::time_point::max() : clock::now() + std::chrono::milliseconds(timeout_ms);
    for (;;) {
        const auto seen = header.event.load();
        const std::uint64_t reached = level == BCK_SEALED       ? sealed_
                                      : level == BCK_MEMORY     ? header.memory_step.load()
                                      : level == BCK_REPLICATED ? header.replicated_step.load()
                                                                : header.durable_step.load();
        if (reached >= step + 1) return {};
        if (clock::now() >= until)
            return {BCK_E_TIMEOUT,
                    fmt::format("step {} did not become that safe in {} ms", step, timeout_ms)};
        if (daemon_gone()) return off({errc::unavailable, "the checkpoint daemon has ended", ""});
        wait_for_change(header, seen, std::chrono::milliseconds(20));
    }
}

outcome client::ask(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                    nlohmann::json* reply) {
    auto answer = connection_.call(type, meta, timeout);
    if (!answer) return off(answer.error());
    if (auto refused = wire::error_from(*answer)) return {code_of(*refused), refused->text()};
    *reply = std::move(*answer);
    return {};
}

outcome client::restart_test(std::uint64_t* step) {
    const std::scoped_lock held(lock_);
    if (!step) return {BCK_E_INVALID, "step is NULL"};
    if (auto r = ready(); r.code != 0) return r;
    nlohmann::json reply;
    if (auto asked = ask(message::restore, {{"test", true}}, restore_timeout, &reply); asked.code != 0)
        return asked;
    const auto found = json_fields(reply).number("step", max_step);
    if (!found) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
    *step = *found;
    return {};
}

outcome client::take(std::byte* buffer, std::uint64_t bytes, std::uint64_t step) {
    const auto contents = read_image({buffer, bytes});
    if (!contents) return {BCK_E_LAYOUT, contents.error().text()};
    if (contents->step != step || contents->rank != rank_)
        return {BCK_E_LAYOUT, fmt::format("the shard says step {}, rank {}, expected {} and {}",
                                          contents->step, contents->rank, step, rank_)};
    std::vector<const region*> found;
    for (const auto& mine : regions_) {
        const auto it = std::find_if(contents->regions.begin(), contents->regions.end(),
                                     [&](const auto& x) { return x.name == mine.name; });
        if (it == contents->regions.end() || it->bytes != mine.bytes || it->dtype != mine.dtype ||
            it->shape != mine.shape)
            return {BCK_E_LAYOUT, fmt::format("region \"{}\" is not in step {} with this dtype and shape",
                                              mine.name, step)};
        found.push_back(&*it);
    }
    for (std::size_t i = 0; i < regions_.size(); ++i) {
        if (!places_[i].on_device) {
            copy_state(static_cast<std::byte*>(places_[i].ptr), buffer + found[i]->offset, regions_[i].bytes);
        } else if (auto c =
                       device::copy_from_host(places_[i].ptr, buffer + found[i]->offset, regions_[i].bytes);
                   !c) {
            return {BCK_E_DEVICE, fmt::format("region \"{}\": {}", regions_[i].name, c.error().text())};
        }
    }
    return {};
}

outcome client::restart(std::uint64_t* step, int* source) {
    const std::scoped_lock held(lock_);
    if (source) *source = BCK_FROM_NONE;
    if (auto r = ready(); r.code != 0) return r;
    nlohmann::json reply;
    if (auto asked = ask(message::restore, nlohmann::json::object(), restore_timeout, &reply);
        asked.code != 0)
        return asked;
    const auto found = json_fields(reply).number("step", max_step);
    if (!found) return {BCK_E_NOTFOUND, "there is no complete checkpoint of this job"};
    const auto buffer = json_fields(reply).number("buffer", connection_.buffers() - 1);
    const auto bytes = json_fields(reply).number("bytes", connection_.buffer_bytes());
    if (!buffer || !bytes) return {BCK_E_REFUSED, "the daemon's answer makes no sense"};
    if (auto taken = take(connection_.buffer(*buffer), *bytes, *found); taken.code != 0) return taken;
    sealed_ = *found + 1;
    if (step) *step = *found;
    const auto from = json_fields(reply).text("source").value_or("");
    if (source)
        *source = from == "local" ? BCK_FROM_LOCAL : from == "peer" ? BCK_FROM_PEER : BCK_FROM_STORAGE;
    return {};
}

outcome client::finalize(bool drain) {
    const std::scoped_lock held(lock_);
    outcome out;
    if (drain && pid_ == ::getpid() && connection_.attached()) {
        nlohmann::json reply;
        out = ask(message::finalize, {{"drain", true}}, drain_timeout, &reply);
        if (connection_.attached()) tell_warning();
    }
    detach();
    initialised_ = false;
    regions_.clear();
    places_.clear();
    layout_changed_ = true;
    sealed_ = 0;
    return out;
}

}  // namespace banyan::ckpt
