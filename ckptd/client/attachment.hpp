// SPDX-License-Identifier: BSD-3-Clause
//
// The way of a process, or of one of its states, to the daemon: connecting, the memory, answers, and the next
// daemon where one has ended. Not thread-safe: the client's lock is held.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "ckptd/client/background.hpp"
#include "ckptd/client/connection.hpp"
#include "ckptd/client/device.hpp"
#include "ckptd/client/outcome.hpp"
#include "ckptd/client/regions.hpp"
#include "common/clock.hpp"

namespace banyan::ckpt {

class attachment {
  public:
    /// `who` must outlive it, and may change while it is detached.
    explicit attachment(const rank_name& who);

    /// Detached; from now on to the daemon that listens there. "": none was promised.
    void begin(std::string socket);
    /// As another state of the process knows its daemon.
    void begin_as(const attachment& other);
    /// Why there is none.
    const std::string& off_because() const { return off_because_; }

    /// Connected; nothing need be attached yet. Who asks for its state looks at once, and waits for a daemon
    /// that is being started again.
    outcome reach(bool asks);
    /// Attached to memory for an image of `bytes`, at least.
    outcome attach_for(std::uint64_t bytes, bool populate = true);
    /// Attached, with whatever memory there is for this rank: so that the daemon hears of a save that is
    /// skipped.
    void hold_place();
    /// After the daemon has ended: attached to the next one, where its keeper starts one.
    outcome come_back();
    /// Makes the daemon's memory fit for copies from a GPU, where a region is on one.
    void pin(const region_table& table);
    outcome ask(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                nlohmann::json* reply, const std::function<void()>& meanwhile = {},
                std::span<std::byte> into = {});
    void tell_warning();
    /// There is none to go on with, which the user is told once. Always BCK_E_NODAEMON.
    outcome off(const error& e);
    void detach();

    /// The save of that step begins, and has come about. The daemon is told of one that does not, so that the
    /// other ranks do not wait for this one's shard.
    void begin_save(std::uint64_t step) { saving_ = step; }
    void end_save() { saving_.reset(); }
    void pass_over();

    connection link;
    background copying;  ///< into the memory of `link`, which waits for its end where it moves or goes

  private:
    outcome too_large(const error& e);
    bool may_come(const error& e) const;
    result<void> connect(clock::time_point until);
    result<void> attach(std::uint64_t bytes, bool populate);
    /// After the daemon has ended: to the next one.
    result<void> attach_anew(std::uint64_t bytes, bool populate);

    const rank_name& who_;
    std::string socket_;
    std::string off_because_;
    int off_code_;  ///< of it, for whoever tries before `next_try_`
    clock::time_point next_try_{};
    std::optional<std::uint64_t> saving_;  ///< by the call under way
    std::uint32_t warnings_seen_ = 0;
    std::vector<device::pinned> pinned_;  ///< each buffer, and tried once; goes before what is mapped
    bool told_off_ = false, told_too_large_ = false;
};

}  // namespace banyan::ckpt
