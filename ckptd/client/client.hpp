// SPDX-License-Identifier: BSD-3-Clause
//
// The state behind the C functions: regions, the image's header, the connection. One lock around all of it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

#include "ckptd/client/attachment.hpp"
#include "ckptd/client/outcome.hpp"
#include "ckptd/client/past.hpp"
#include "ckptd/client/regions.hpp"
#include "ckptd/store/step_reader.hpp"
#include "common/clock.hpp"

namespace banyan::ckpt {

/// Regions that a call brings along.
using given_regions = std::optional<std::span<const bck_tensor>>;

/// What the calls do, under the lock that they take.
class unlocked_client {
  protected:
    // opening.cpp
    /// The lock, for the length of a call.
    outcome take_turn(std::unique_lock<std::mutex>& turn);
    /// bck_init was called, by this process.
    outcome usable() const;

    /// Attached to memory for the regions of one call, which `table` then names. `asks` as of
    /// attachment::reach(); the pages come later then.
    outcome ready(const given_regions& given, region_table** table, bool asks = false);

    // saving.cpp
    struct begun_save {
        std::uint64_t step = 0;
        std::size_t buffer = 0;
        std::uint64_t bytes = 0;
        region_table* table = nullptr;  ///< until the next call that brings regions along
    };
    /// What a step's number may not be.
    outcome check_step(std::uint64_t step) const;
    /// A buffer is this save's.
    outcome begin_save(std::uint64_t step, const given_regions& given, begun_save* begun);
    /// Its copy is in the buffer: the daemon has it.
    outcome seal(const begun_save& begun);
    outcome skip(outcome why);

    // waiting.cpp
    int free_buffer();
    /// How far this process is, for whoever looks at its page.
    void beat(std::uint64_t step, std::uint32_t phase);
    void beat_of_save(std::uint64_t step);

    // restoring.cpp
    outcome ask_for_state(bool test, nlohmann::json* reply, const region_table& into,
                          bool takes_nothing = false);
    outcome ask_for_shard(const region_table& table, nlohmann::json* reply);
    /// Of one who saves and has never asked: whether there is a state that would be lost by it.
    outcome ask_before_saving();
    outcome find(std::uint64_t* step, nlohmann::json* reply);
    outcome bring(std::uint64_t* step, int* source, const given_regions& given);

    // taking.cpp
    outcome look(image_contents* found);
    outcome take_from(const nlohmann::json& reply, std::uint64_t step, const region_table& table);
    /// The step of the daemon's answer, whatever holds it.
    result<step_reader> reader_of(const nlohmann::json& reply);
    outcome read_own(const nlohmann::json& reply, image_contents* found);
    result<nlohmann::json> ask_of_step(message type, const nlohmann::json& meta, std::span<std::byte> into);

    std::mutex lock_;
    bool initialised_ = false;
    std::atomic<pid_t> pid_{::getpid()};  ///< of the process that may use it
    rank_name who_;
    std::chrono::milliseconds buffer_timeout_{2000};
    region_table regions_;
    given_tables given_;
    attachment daemon_{who_};
    std::uint64_t hung_at_ = 0;  ///< the daemon's beat while a save waited for it in vain; 0: it did not
    past past_;                  ///< of this process
    std::optional<begun_save> begun_;  ///< its copy is under way, or was cancelled
};

class client : unlocked_client {
  public:
    outcome init(const char* job, int rank, int world);
    /// A state with a name of the process that `of` was told of; nothing new where it is open.
    outcome open(client& of, const std::string& state);
    /// It was opened, or initialised, and not ended since.
    bool is_in_use();
    outcome protect(const bck_tensor& region);
    outcome unprotect(const char* name);
    /// Nothing for `given`: what is protected.
    outcome checkpoint(std::uint64_t step, given_regions given);
    /// The first half of it, and the second. `stream`: of a GPU, by which the regions there are written.
    outcome begin(std::uint64_t step, given_regions given, void* stream);
    outcome end();
    /// Makes the memory that checkpoint() of the same would make.
    outcome reserve(given_regions given);
    outcome wait(std::uint64_t step, int level, int timeout_ms);
    outcome milestone(std::uint64_t step, const char* name);
    /// Neither waits for another thread's call.
    bool seal_requested();
    void heartbeat(std::uint64_t step, std::uint32_t phase);
    outcome restart_query(std::uint64_t* step);
    /// What restart() would bring, without bringing it.
    outcome stat(image_contents* found);
    /// The same step, of all ranks that saved it; it outlives no state.
    outcome open_step(std::unique_ptr<step_source>* found);
    outcome restart(std::uint64_t* step, int* source, given_regions given);
    /// `meanwhile` is done while the daemon works.
    outcome finalize(bool drain, const std::function<void()>& meanwhile = {});
};

}  // namespace banyan::ckpt
