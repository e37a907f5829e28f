// SPDX-License-Identifier: BSD-3-Clause
//
// The state behind the C functions: regions, the image's header, the connection. One lock around all of it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include "ckptd/client/connection.hpp"
#include "ckptd/client/outcome.hpp"
#include "ckptd/client/regions.hpp"
#include "ckptd/store/safetensors.hpp"

namespace banyan::ckpt {

/// Regions that a call brings along.
using given_regions = std::optional<std::span<const bck_tensor>>;

class client {
  public:
    outcome init(const char* job, int rank, int world);
    /// A state with a name of the process that `of` was told of; nothing new where it is open.
    outcome open(client& of, const std::string& state);
    outcome protect(const bck_tensor& region);
    outcome unprotect(const char* name);
    /// Nothing for `given`: what is protected.
    outcome checkpoint(std::uint64_t step, given_regions given);
    outcome wait(std::uint64_t step, int level, int timeout_ms);
    outcome restart_test(std::uint64_t* step);
    /// What restart() would bring, without bringing it.
    outcome stat(image_contents* found);
    outcome restart(std::uint64_t* step, int* source, given_regions given);
    /// `meanwhile` is done while the daemon works.
    outcome finalize(bool drain, const std::function<void()>& meanwhile = {});

  private:
    using clock = std::chrono::steady_clock;

    // opening.cpp
    /// The lock, for the length of a call.
    outcome take_turn(std::unique_lock<std::mutex>& turn);
    /// bck_init was called, by this process.
    outcome usable() const;
    void become(const rank_name& who);
    /// Nothing was saved or restored, as at the beginning.
    void forget_steps();

    // attaching.cpp
    /// Connected; nothing need be protected. Who asks for its state looks at once, and waits for a daemon
    /// that is being started again.
    outcome reach(bool asks);
    bool may_come(const error& e) const;
    result<void> connect(clock::time_point until);
    result<void> attach(std::uint64_t bytes, bool populate = true);
    /// After the daemon has ended: to the next one.
    result<void> attach_anew(std::uint64_t bytes, bool populate);
    /// Attached to memory for an image of `bytes`, at least.
    outcome attach_for(std::uint64_t bytes, bool populate = true);
    /// Attached to memory for the regions of one call, which `table` then names. `asks` as of reach(); the
    /// pages come later then.
    outcome ready(const given_regions& given, region_table** table, bool asks = false);
    /// After the daemon has ended: attached to the next one, where its keeper starts one.
    outcome come_back();
    /// Makes the daemon's memory fit for copies from a GPU, where a region is on one.
    void pin(const region_table& table);
    outcome ask(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                nlohmann::json* reply, const std::function<void()>& meanwhile = {});
    void tell_warning();
    outcome off(const error& e);
    void detach();

    // saving.cpp
    outcome save(std::uint64_t step, const given_regions& given);
    int free_buffer();
    /// The step that is being saved does not come about.
    void pass_over();

    // restoring.cpp
    outcome ask_for_state(bool test, nlohmann::json* reply, const region_table& into);
    /// What a question for the state has come to.
    outcome heard(outcome answer);
    outcome find(std::uint64_t* step);
    outcome look(image_contents* found);
    outcome bring(std::uint64_t* step, int* source, const given_regions& given);
    /// `of`: the rank that saved it, if it was another one, or one of another number of ranks.
    outcome take(std::span<std::byte> image, std::uint64_t step, std::optional<std::uint32_t> of,
                 const region_table& table);
    /// The job has gone back since this process was given its state.
    bool is_behind() const;
    outcome behind() const;

    std::mutex lock_;
    bool initialised_ = false;
    std::atomic<pid_t> pid_{::getpid()};  ///< of the process that may use it
    rank_name who_;
    std::string socket_;
    std::chrono::milliseconds buffer_timeout_{2000};
    region_table regions_;
    given_tables given_;
    connection connection_;
    bool pinned_ = false;
    clock::time_point next_try_{};
    std::string off_because_;
    std::uint64_t sealed_ = 0;   ///< newest sealed or restored step, plus 1
    bool has_saved_ = false;     ///< since it was given its state, in this or an earlier session
    bool has_begun_ = false;     ///< it was given its state, or told that there is none, or has saved
    bool must_restart_ = false;  ///< it was behind, and has only looked since
    bool unanswered_ = false;    ///< it has asked for its state, and does not know what it is
    std::optional<std::uint64_t> saved_;   ///< newest step sealed since the state was restored
    std::optional<std::uint64_t> saving_;  ///< by the call under way
    std::uint32_t warnings_seen_ = 0;
    bool told_off_ = false;
};

}  // namespace banyan::ckpt
