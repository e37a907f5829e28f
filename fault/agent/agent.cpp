// SPDX-License-Identifier: BSD-3-Clause
#include "fault/agent/agent.hpp"

#include <algorithm>

#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "ckptd/protocol/protocol.hpp"
#include "common/file.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "common/timer.hpp"

namespace banyan::fault {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

std::string read_boot_id(const std::filesystem::path& root) {
    for (const auto& base : {root, std::filesystem::path("/")})
        if (auto text = read_file(base / "proc/sys/kernel/random/boot_id", 256))
            return std::string(trim(*text));
    return "unknown";
}

bool is_device(const std::string& path) {
    struct stat s {};
    return ::stat(path.c_str(), &s) == 0 && S_ISCHR(s.st_mode);
}

}  // namespace

agent::agent(asio::io_context& io, asio::thread_pool& pool, config settings,
             std::shared_ptr<metrics> counters)
    : io_(io),
      pool_(pool),
      config_(std::move(settings)),
      metrics_(std::move(counters)),
      log_(config_.kmsg_belief(), is_device(config_.kmsg)),
      programs_(io, config_,
                [this](kernel_fault fault, const log_line& line, std::uint32_t job) {
                    const auto text = printable(line.raw.substr(0, 480));
                    after_fault(std::move(fault), line, text, job);
                }),
      hca_counters_(io, config_, metrics_, findings()),
      hcas_(io, config_, metrics_, findings()),
      gpu_looks_(io, config_, metrics_, findings()),
      places_(io, config_, metrics_),
      jobs_(io, config_,
            [this](kernel_fault fault, const std::string& text, std::uint32_t job) {
                after_fault(std::move(fault), {text, finding_stream_, ++findings_, clock::wall_ms()}, text,
                            job);
            }),
      sweeps_(io, config_),
      finding_stream_(fmt::format("look:{}", clock::wall_ms())) {
    peer_ = peer::settings::of(peer_role, config_.node, config_.munge_socket, config_.encrypt, munge_, pool_);
    boot_id_ = read_boot_id(config_.root);
    ckptd_socket_ = config_.ckptd_socket;
    gpus_.refresh(config_.root);
    parser_.set_branch(driver_branch(config_.root));
}

void agent::start() {
    spdlog::info("agent of {}: log {}, {} GPUs, controller {}:{}", config_.node, config_.kmsg, gpus_.size(),
                 config_.controller, config_.port);
    asio::co_spawn(io_, follow_log(), asio::detached);
    programs_.start();
    hca_counters_.start();
    hcas_.start();
    gpu_looks_.start();
    places_.start();
    jobs_.start();
    asio::co_spawn(io_, stay_connected(), asio::detached);
    asio::co_spawn(io_, tick(), asio::detached);
}

task<void> agent::stay_connected() {
    constexpr milliseconds quick(100), slowest(5000);
    auto pause = quick;
    int tries = 0;
    for (;;) {
        // The controller's node may have another name than the one it is reached by: any will do.
        auto opened = co_await peer::connect_peer(config_.controller, config_.port, "", peer_);
        result<void> ended = opened ? result<void>{} : result<void>(std::unexpected(opened.error()));
        if (opened) {
            spdlog::info("connected to the controller");
            pause = quick;
            tries = 0;
            ended = co_await serve(std::move(*opened));
        }
        std::uint64_t held = 0;
        if (!ended && quiet_.pass("controller", clock::now(), held))
            spdlog::warn(
                "the controller {}:{} is away ({}); {} events wait ({} more such messages held back)",
                config_.controller, config_.port, ended.error().text(), queue_.size(), held);
        timer again(io_, pause);
        co_await again.async_wait(as_result);
        if (++tries > 8) pause = std::min(pause * 2, slowest);  // quick at first: a restart takes a second
    }
}

task<result<void>> agent::serve(std::unique_ptr<peer::channel> connection) {
    auto link = std::make_shared<channel>(std::move(connection));
    json hello = {{"node", config_.node}, {"boot", boot_id_}, {"gpus", gpus_.size()}};
    BANYAN_CO_CHECK(co_await link->peer().write_frame(code(message::hello), std::move(hello)));
    BANYAN_CO_TRY(const auto welcome, co_await link->peer().read_frame());
    if (auto refused = wire::error_from(welcome.meta)) co_return std::unexpected(*refused);
    if (welcome.type != code(message::welcome))
        co_return fail(errc::invalid_input, "the controller broke the protocol");
    link->start();
    link_ = link;
    sent_count_ = 0;
    told_position_ = UINT64_MAX;
    read_what_was_missed(welcome.meta);
    expect_ports(welcome.meta);
    pump();
    send_heartbeat();
    co_await read_replies(link);
    link->close();
    link_.reset();
    co_return fail(errc::unavailable, "the connection ended");
}

task<void> agent::read_replies(std::shared_ptr<channel> link) {
    for (;;) {
        auto frame = co_await link->peer().read_frame();
        if (!frame) co_return;
        if (frame->type == code(message::ack)) {
            const auto batch = json_fields(frame->meta).number("batch");
            if (!batch || *batch != sent_batch_ || sent_count_ == 0) continue;
            queue_.confirm(std::exchange(sent_count_, 0));
            pump();
        } else if (frame->type == code(message::seal)) {
            after_seal_request(frame->meta);
        } else if (frame->type == code(message::sweep)) {
            if (const auto request = json_fields(frame->meta).number("request"))
                asio::co_spawn(io_, sweep_for(*request), asio::detached);
        }
    }
}

void agent::pump() {
    if (!link_ || sent_count_ > 0 || queue_.empty()) return;
    const auto some = queue_.front(max_batch);
    json list = json::array();
    for (const auto& e : some) list.push_back(to_json(by_the_clock_of_now(e, clock_gap_ms())));
    sent_batch_ = ++batch_;
    json meta = {{"batch", sent_batch_}, {"now_ms", clock::wall_ms()}, {"events", std::move(list)}};
    if (!link_->send(message::events, std::move(meta))) return;
    sent_count_ = some.size();
    sent_at_ = clock::now();
}

void agent::send_heartbeat() {
    if (!link_) return;
    const auto position = device_ ? device_->position() : file_ ? file_->position() : 0;
    const bool moved = queue_.empty() && position != told_position_;
    if (!moved && ++beats_ % 5 != 0) return;
    json meta = {{"now_ms", clock::wall_ms()},
                 {"queued", queue_.size()},
                 {"dropped", queue_.dropped()},
                 {"lost", lost_}};
    if (const auto& domain = gpu_looks_.nvlink_domain()) meta["nvlink_domain"] = *domain;
    if (moved && file_) {
        meta["cursor"] = {{"boot", boot_id_},
                          {"stream", file_->stream()},
                          {"inode", std::uint64_t{file_->inode()}},
                          {"position", position}};
    }
    if (link_->send(message::heartbeat, std::move(meta)) && moved) told_position_ = position;
}

task<void> agent::tick() {
    banyan::timer timer(io_);
    for (;;) {
        timer.expires_after(std::chrono::seconds(1));
        co_await timer.async_wait(as_result);
        queue_.flush_repeats(clock::wall_ms());
        pump();
        send_heartbeat();
        metrics_->set_queue(queue_.size());
        // No acknowledgement: the connection is dead, however alive it looks.
        if (link_ && sent_count_ > 0 && clock::now() - sent_at_ > std::chrono::seconds(5)) link_->close();
    }
}

void agent::after_seal_request(const json& meta) {
    const auto request = json_fields(meta).number("request"),
               job = json_fields(meta).number("job", UINT32_MAX);
    const auto timeout = json_fields(meta).number("timeout_ms", 60'000);
    if (request && job && timeout)
        asio::co_spawn(io_, seal_for(*request, *job, milliseconds(static_cast<std::int64_t>(*timeout))),
                       asio::detached);
}

task<void> agent::seal_for(std::uint64_t request, std::uint64_t job, milliseconds timeout) {
    auto meta = co_await seal(job, timeout);
    meta["request"] = request;
    if (link_) link_->send(message::sealed, std::move(meta));
}

task<void> agent::sweep_for(std::uint64_t request) {
    const auto found = co_await sweeps_.ask();
    spdlog::info("swept for the controller: {}: {}", found.verdict, found.text);
    json meta = {{"request", request}, {"verdict", found.verdict}, {"text", found.text}};
    if (link_) link_->send(message::swept, std::move(meta));
}

task<void> agent::seal_by_itself() {
    sealing_ = true;
    auto done = co_await seal(0, config_.seal_timeout);
    sealing_ = false;
    sealed_at_ = clock::now();
    const auto text = done["error"].get<std::string>();
    json meta = {{"at_ms", clock::wall_ms()}, {"text", text.empty() ? done["jobs"].dump() : text}};
    spdlog::info("sealed on the line: {}", meta["text"].get<std::string>());
    if (link_) link_->send(message::self_sealed, std::move(meta));
}

task<json> agent::seal(std::uint64_t job, milliseconds timeout) {
    auto sealed = co_await run_blocking(
        pool_, [this, job, timeout] { return ckpt::seal_now(ckptd_socket_, job, timeout); });
    json jobs = json::array();
    if (sealed)
        for (const auto& s : *sealed) {
            json one = {{"job", s.job}, {"step", s.step}, {"replicated", s.replicated}};
            jobs.push_back(std::move(one));
        }
    json out = {{"jobs", std::move(jobs)}, {"error", sealed ? "" : sealed.error().what}};
    co_return out;
}

}  // namespace banyan::fault
