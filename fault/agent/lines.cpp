// SPDX-License-Identifier: BSD-3-Clause
//
// The agent's input side: from the log's bytes to events in the queue.
#include <boost/asio/detached.hpp>
#include <fmt/format.h>

#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "common/timer.hpp"
#include "fault/agent/agent.hpp"
#include "fault/incident/incident.hpp"
#include "fault/sources/process_job.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t max_text = 480;
constexpr std::int64_t fresh_ms = 60'000;  // older lines are history, not a reason to seal

}  // namespace

task<void> agent::follow_log() {
    const auto sink = [this](const log_line& line) { after_line(line); };
    for (;;) {
        result<void> ended;
        if (log_.of_device()) {
            device_ = std::make_unique<kmsg_device>(config_.kmsg, sink,
                                                    [this](std::uint64_t records) { after_loss(records); });
            ended = co_await device_->run();
        } else {
            // What is in the file already was read by an earlier agent; the controller knows how far.
            file_ = std::make_unique<file_follower>(config_.kmsg, file_follower::start::end, sink);
            ended = co_await file_->run();
        }
        std::uint64_t held = 0;
        if (!ended && quiet_.pass("log", clock::now(), held))
            spdlog::error("cannot read the kernel log: {}", ended.error().text());
        timer again(io_, std::chrono::seconds(1));
        co_await again.async_wait(as_result);
    }
}

// What was in them nobody knows: no event is made of it.
void agent::after_loss(std::uint64_t records) {
    lost_ += records;
    metrics_->count_lost(records);
    std::uint64_t held = 0;
    if (quiet_.pass("lost", clock::now(), held))
        spdlog::warn(
            "{} records of {} were overwritten before they were read, {} since the agent began: a larger "
            "log_buf_len of the kernel keeps more",
            records, config_.kmsg, lost_);
}

void agent::after_line(const log_line& line) {
    const auto seen = log_.read(line.raw, [&](std::string_view text) { take_text(line, text); });
    metrics_->count_line(seen.dirty);
    std::uint64_t held = 0;
    if (seen.refused && quiet_.pass("refused", clock::now(), held))
        spdlog::warn(
            "a line of {} looks like a fault, but users may have written it: [fault] kmsg_trust is \"{}\" "
            "({} more "
            "held back)",
            config_.kmsg, name_of(config_.kmsg_belief()), held);
}

void agent::take_text(const log_line& line, std::string_view text) {
    auto found = parser_.line(text);
    if (found.identity) gpus_.learn(*found.identity);
    if (!found.fault) return;
    const bool of_a_gpu = found.fault->kind == fault_kind::xid || found.fault->kind == fault_kind::bus_loss;
    after_fault(std::move(*found.fault), line, text);
    if (of_a_gpu) gpu_looks_.hurry();
}

// The driver names the process whose work failed. It may be gone by now.
std::uint32_t agent::job_of(const kernel_fault& fault) {
    if (fault.kind != fault_kind::xid || precedence_of(fault) != precedence::app) return 0;
    const auto pid = parse_number(fault.pid, UINT32_MAX);
    if (!pid) return 0;
    const auto now = clock::now();
    if (asked_.pid != *pid || now - asked_.at > std::chrono::seconds(1)) {
        const auto whose = job_of_process(config_.root, static_cast<std::uint32_t>(*pid));
        asked_ = {*pid, whose ? whose->job : 0, now};
    }
    return asked_.job;
}

void agent::after_fault(kernel_fault fault, const log_line& line, std::string_view text, std::uint32_t job) {
    event e;
    e.node = config_.node;
    e.boot_id = boot_id_;
    e.stream = line.stream;
    e.position = line.position;
    e.line_ms = line.line_ms;
    e.clock_gap_ms = clock_gap_ms();
    // What is of no place, as users' own failures are, is of no GPU: nothing is read for it.
    if (fault.kind != fault_kind::sxid && !fault.bdf.empty()) {
        if (!gpus_.find(fault.bdf)) gpus_.refresh(config_.root);
        if (const auto* place = gpus_.find(fault.bdf)) {
            e.gpu = place->minor;
            e.uuid = place->uuid;
            e.serial = place->serial;
        }
    }
    e.place = places_.of(fault.bdf);
    if (fault.kind == fault_kind::xid || fault.kind == fault_kind::bus_loss)
        e.nvlink_domain = gpu_looks_.nvlink_domain().value_or("");
    e.text = text.substr(0, max_text);
    e.job = job != 0 ? job : job_of(fault);
    e.fault = std::move(fault);
    metrics_->count_event(e.fault);
    const bool grave = calls_for_seal(e.fault) && clock::wall_ms() - e.line_ms < fresh_ms;
    if (queue_.push(std::move(e))) spdlog::info("{}", text.substr(0, max_text));
    pump();
    if (grave && !sealing_ && clock::now() - sealed_at_ > std::chrono::seconds(2))
        asio::co_spawn(io_, seal_by_itself(), asio::detached);
}

// What a look found has no line: its place is the number of the finding, of this run of the agent.
finding_sink agent::findings() {
    return [this](kernel_fault fault, const std::string& text) {
        after_fault(std::move(fault), {text, finding_stream_, ++findings_, clock::wall_ms()}, text);
    };
}

/// Of HCAs whose incidents are open: an earlier agent may have told, and the ports are up since.
void agent::expect_ports(const nlohmann::json& welcome) {
    const auto cards = json_fields(welcome).list("ports_down", max_lost_cards);
    if (!cards) return;
    for (const auto& one : *cards) {
        const auto card = one.text("card", 64);
        const auto ports = one.texts("ports", incident::max_ports, 64);
        if (card && ports) hcas_.expect(*card, *ports);
    }
}

void agent::read_what_was_missed(const nlohmann::json& welcome) {
    if (!file_ || gap_read_) return;
    gap_read_ = true;
    const auto cursor = json_fields(welcome).object("cursor");
    if (!cursor) return;
    const auto boot = cursor->text("boot"), stream = cursor->text("stream", 256);
    const auto inode = cursor->number("inode"), position = cursor->number("position");
    if (!boot || !stream || !inode || !position || *boot != boot_id_) return;
    const bool whole = read_missed(config_.kmsg, {*inode, *position, *stream}, file_->inode(),
                                   file_->started_at(), [this](const log_line& line) { after_line(line); });
    if (!whole)
        spdlog::warn(
            "{} was rotated or cut while no agent read it, and the end of what it was is not to be found: "
            "what "
            "stood there is not known",
            config_.kmsg);
}

}  // namespace banyan::fault
