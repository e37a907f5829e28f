// SPDX-License-Identifier: BSD-3-Clause
//
// Which cables new jobs are kept off. The incidents say it, and the file that slurmctld reads follows from
// them: this is its only writer. A cable is let go when it was well for long enough, or when somebody says
// so.
#pragma once

#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "fault/config.hpp"
#include "fault/controller/records.hpp"
#include "fault/controller/ruling.hpp"
#include "fault/fabric/avoid_list.hpp"

namespace banyan::fault {

/// Since when the cable is well; 0: it is not, its fault stands. A fault that is over by itself, and one that
/// is only counted, was there when it was last seen.
std::int64_t well_since(const incident& i);

/// All calls on the io_context's thread.
class avoidance {
  public:
    avoidance(asio::io_context& io, asio::thread_pool& pool, const config& settings, records& known)
        : io_(io),
          pool_(pool),
          config_(settings),
          records_(known),
          spare_(settings.snapshot, settings.avoid_percent) {}

    /// Writes the file from what the incidents say, and begins to let go what is well.
    void start();
    /// The rules ask for it. `tripped`: the circuit breaker is open. What cannot be done is said, and tried
    /// again.
    task<void> keep_off(std::uint64_t number, bool tripped);
    /// Somebody has seen to it, or it is well. Nothing where nobody is kept off it.
    task<void> let_go(std::uint64_t number, std::string why);

    /// An administrator's word. In words, what comes of it.
    task<result<std::string>> rule_on(std::uint64_t number, ruling what, std::string who, bool tripped);

    /// So many.
    std::size_t size() const { return avoided(0).size(); }
    /// How often the snapshot was read for it.
    std::uint64_t snapshot_reads() const { return spare_.reads(); }

  private:
    task<void> run();
    task<void> load_older();
    task<void> let_go_the_well();
    task<void> try_again();
    /// Those of all incidents but `but`.
    std::vector<cable> avoided(std::uint64_t but) const;
    void hold(incident& i, const std::string& why);
    task<bool> write();

    asio::io_context& io_;
    asio::thread_pool& pool_;
    const config& config_;
    records& records_;
    spare_links spare_;
    // Of incidents that the history has lost: kept off until then, since nobody knows that they are well.
    std::vector<cable> forgotten_;
    std::int64_t forgotten_until_ms_ = 0;
    bool ready_ = false;    // the incidents of an earlier controller are known
    bool written_ = false;  // the file is as they say
    bool tripped_ = false;  // at the last question
};

/// What was tried last for it was held back.
bool is_avoid_held(const incident& i);

}  // namespace banyan::fault
