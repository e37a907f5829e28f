// SPDX-License-Identifier: BSD-3-Clause
//
// From what the fabric, its subnet manager and UFM tell to incidents. Nothing here takes a node out: whoever
// owns it judges.
#pragma once

#include <functional>
#include <string>

#include "fault/controller/fabric_watch.hpp"
#include "fault/controller/hearing.hpp"
#include "fault/controller/manager_watch.hpp"
#include "fault/controller/records.hpp"
#include "fault/fabric/fabric_plan.hpp"
#include "fault/slurm/cluster.hpp"

namespace banyan::fault {

class fabric_incidents {
  public:
    using hear = std::function<void(std::uint64_t number, change what)>;

    /// What is given by reference must outlive it.
    fabric_incidents(asio::io_context& io, asio::thread_pool& pool, const config& settings, records& known,
                     cluster& slurm, hear to);
    void start();
    /// An administrator closed it: what of it is gone is gone for good.
    void closed_by_hand(const incident& i);

  private:
    void after_look(fabric_news news);
    void apply(const fabric_step& step, const fabric_news& news);
    void after_manager(const manager_news& news);
    void after_told(const ufm_event& told, std::int64_t line_ms);
    incident* open(incident made);  // which is to be heard of
    void close(incident& i, std::string by);
    void note(incident& i, std::string source, std::string text, std::int64_t at_ms);
    /// The newest that is open, or was closed a short while ago, of the same culprit.
    incident* recent(std::string_view boot, const object& culprit);
    incident* again_or_new(incident made);

    records& records_;
    const std::int64_t window_ms_;
    hear hear_;
    fabric_watch fabric_;
    manager_watch manager_;
};

}  // namespace banyan::fault
