// SPDX-License-Identifier: BSD-3-Clause
//
// The client's end of the Unix socket and the mapped buffers. Blocking; one thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>
#include <unistd.h>

#include "ckptd/buffers/joined.hpp"
#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/protocol/local_protocol.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "common/fd.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {

/// Whose memory it is.
struct rank_name {
    std::uint64_t job = 0;
    std::optional<std::uint32_t> step;  ///< of the job, that this process belongs to; where that is known
    std::uint32_t rank = 0, world = 0;
    std::string state;  ///< of several states of the process one with a name; else empty
};

class connection {
  public:
    /// Connects to the daemon; nothing is attached yet.
    result<void> open(const std::string& socket);
    /// Gets memory for images of `bytes` and maps all of it. Returns the daemon's warning for the user.
    /// Without `populate` the pages come with populate(). `moves` is done before what is mapped may move.
    result<std::string> attach(const rank_name& who, std::uint64_t bytes, bool populate,
                               const std::function<void()>& moves);
    /// The last attach() failed by the daemon's word: what was attached before still is.
    bool was_refused() const { return refused_; }
    /// Has all pages in the mapping, so that no save has page faults.
    void populate();
    /// The reply as it came, a refusal too; an error here means that the connection is lost. `meanwhile` is
    /// done while the daemon works, and the time counts from its end. The reply's body fills `into`.
    result<nlohmann::json> call(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                                const std::function<void()>& meanwhile = {}, std::span<std::byte> into = {});
    /// A one-way message of one number, without allocation. False when the daemon is gone.
    bool post(message type, const char* field, std::uint64_t value);
    void close();

    /// Whether the daemon still holds its end.
    bool alive() const;
    bool is_open() const { return static_cast<bool>(fd_); }
    /// By this process, not by one that it was forked from.
    bool attached() const { return map_ && mapped_by_ == ::getpid(); }
    std::uint64_t buffer_bytes() const { return buffer_bytes_; }
    std::uint32_t buffers() const { return buffers_; }
    /// The daemon's memory outlives it: it will be there again. Of the last attach().
    bool is_kept() const { return kept_; }
    /// Why no step of the job ever gets that far, as the daemon said at the last attach(); "": it may.
    std::string_view never_reaches(int level) const;
    std::uint64_t generation() const { return generation_; }
    void set_generation(std::uint64_t g) { generation_ = g; }
    std::byte* buffer(std::size_t i) const { return map_.data() + lead_ + buffer_offset(i, buffer_bytes_); }
    rank_memory_header& header() const { return *reinterpret_cast<rank_memory_header*>(map_.data() + lead_); }

  private:
    /// One file of the memory.
    struct part {
        unique_fd fd;
        std::uint64_t device = 0, inode = 0;
        std::uint64_t each = 0;  ///< of every buffer
    };
    result<std::vector<part>> receive_parts(const nlohmann::json& reply, unique_fd first,
                                            std::uint64_t header, wire::deadline until);
    result<mapping> map(const std::vector<part>& parts, const joined_shape& shape);

    unique_fd fd_;
    mapping map_;
    pid_t mapped_by_ = 0;
    std::uint64_t lead_ = 0;   ///< before the header
    std::vector<part> parts_;  ///< that are mapped, without their descriptors
    std::uint32_t buffers_ = 0;
    std::uint64_t buffer_bytes_ = 0;
    std::uint64_t generation_ = 0;
    bool kept_ = false;
    bool replicates_ = true, stores_ = true;  ///< the job's steps, for all that is known
    bool populated_ = false;
    bool refused_ = false;
    bool maps_huge_ = true;  ///< reserved huge pages, for all that is known
};

}  // namespace banyan::ckpt
