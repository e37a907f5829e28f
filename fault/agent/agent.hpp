// SPDX-License-Identifier: BSD-3-Clause
//
// The agent of one node: reads the kernel log and looks at the hardware, has the local checkpoint daemon seal
// at once when a line is grave, and sends every fault to the controller until it is acknowledged. It judges
// nothing and touches nothing else.
#pragma once

#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "common/clock.hpp"
#include "common/log.hpp"
#include "common/peer/handshake.hpp"
#include "fault/agent/counter_watch.hpp"
#include "fault/agent/event_queue.hpp"
#include "fault/agent/gpu_watch.hpp"
#include "fault/agent/hca_watch.hpp"
#include "fault/agent/job_watch.hpp"
#include "fault/agent/node_sweep.hpp"
#include "fault/agent/place_watch.hpp"
#include "fault/agent/program_watch.hpp"
#include "fault/config.hpp"
#include "fault/metrics/metrics.hpp"
#include "fault/net/channel.hpp"
#include "fault/sources/file_follower.hpp"
#include "fault/sources/gpu_map.hpp"
#include "fault/sources/kernel_log.hpp"
#include "fault/sources/kmsg_device.hpp"

namespace banyan::fault {

class agent {
  public:
    agent(asio::io_context& io, asio::thread_pool& pool, config settings, std::shared_ptr<metrics> counters);
    void start();

  private:
    task<void> follow_log();
    void after_line(const log_line& line);
    void after_loss(std::uint64_t records);
    void take_text(const log_line& line, std::string_view text);
    void after_fault(kernel_fault fault, const log_line& line, std::string_view text, std::uint32_t job = 0);
    finding_sink findings();
    std::uint32_t job_of(const kernel_fault& fault);

    task<void> stay_connected();
    task<result<void>> serve(std::unique_ptr<peer::channel> connection);
    task<void> read_replies(std::shared_ptr<channel> link);
    task<void> tick();
    void pump();
    void read_what_was_missed(const nlohmann::json& welcome);
    void expect_ports(const nlohmann::json& welcome);
    void send_heartbeat();
    void after_seal_request(const nlohmann::json& meta);

    task<void> seal_for(std::uint64_t request, std::uint64_t job, std::chrono::milliseconds timeout);
    task<void> sweep_for(std::uint64_t request);
    task<void> seal_by_itself();
    task<nlohmann::json> seal(std::uint64_t job, std::chrono::milliseconds timeout);

    asio::io_context& io_;
    asio::thread_pool& pool_;
    config config_;
    std::shared_ptr<metrics> metrics_;
    asio::thread_pool munge_{1};
    peer::settings peer_;
    std::string boot_id_, ckptd_socket_;
    gpu_map gpus_;
    kernel_log log_;
    kernel_parser parser_;
    event_queue queue_;
    program_watch programs_;
    counter_watch hca_counters_;
    hca_watch hcas_;
    gpu_watch gpu_looks_;
    place_watch places_;
    job_watch jobs_;
    node_sweep sweeps_;
    std::string finding_stream_;
    std::uint64_t findings_ = 0, lost_ = 0;  // lost_: records of the kernel log
    std::unique_ptr<file_follower> file_;
    std::unique_ptr<kmsg_device> device_;
    std::shared_ptr<channel> link_;
    log_limiter quiet_;
    std::uint64_t batch_ = 0, sent_batch_ = 0;
    std::size_t sent_count_ = 0;  // events on their way; 0 = none
    clock::time_point sent_at_, sealed_at_;
    bool sealing_ = false, gap_read_ = false;
    std::uint64_t told_position_ = UINT64_MAX;
    struct {
        std::uint64_t pid = 0;
        std::uint32_t job = 0;
        clock::time_point at;
    } asked_;  // the last process whose job was looked up: a storm is about one
    int beats_ = 0;
};

}  // namespace banyan::fault
