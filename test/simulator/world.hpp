// SPDX-License-Identifier: BSD-3-Clause
//
// A simulated cluster for the checkpoint daemons' agreement: nodes, a network that loses, delays, doubles and
// reorders, partitions, daemons that stop, die and come back with or without their memory, ranks that train,
// save and are started again. One seed gives one schedule, always the same. What must hold is checked at
// every step; a breach ends the schedule with a line that says it.
#pragma once

#include <cstdint>
#include <string>

namespace banyan::ckpt::simulator {

struct settings {
    std::uint32_t slots = 3;
    std::uint32_t spares = 1;
    std::uint32_t buffers = 3;  ///< of a rank; one rank a slot
    int waits = 20;             ///< of 10 ms each, for a free buffer; then the save is skipped
    int faults = 4;             ///< in a schedule
    /// A launch may leave nodes that live, and come back to them later. Then the next one's daemons know of
    /// the former nodes only what they have kept, and what the claim of the directory says.
    bool moves = false;
    bool claims = false;  ///< the job has a directory
    bool plans = false;   ///< each launch is told of nodes of those before
    /// For how long a former node that is silent is waited for where nobody knows that something is missing;
    /// less than they are: what is theirs is given up, and they may go on with the launch before.
    int patience_us = 1'000'000;
    /// Data parallel groups of so many ranks, of which `slots` has several and each holds the same; 0: none.
    /// A launch may then have fewer of them, min_groups or more, and a later one more again.
    std::uint32_t group = 0;
    std::uint32_t min_groups = 1;
    bool trace = false;  ///< every event to stderr
};

struct outcome {
    std::string breach;  ///< empty: everything held
    std::uint64_t events = 0, saves = 0, commits = 0, releases = 0, faults = 0, relaunches = 0;
    /// Releases from before the newest acknowledgement, which had not survived.
    std::uint64_t restored_older = 0;
    std::uint64_t awaited = 0;     ///< looks at which a silent node was awaited
    std::uint64_t departures = 0;  ///< nodes that were told to let go of what they held
    /// Nodes that forgot those before, though their launch did not stand alone there in time.
    std::uint64_t forgot_late = 0;
    std::uint64_t fewer = 0, more = 0;  ///< launches with another number of groups than the one before
    std::uint64_t from_others = 0;      ///< shards that a rank took in place of its own
};

outcome run(std::uint64_t seed, const settings& s);

}  // namespace banyan::ckpt::simulator
