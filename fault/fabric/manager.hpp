// SPDX-License-Identifier: BSD-3-Clause
//
// The subnet manager itself: what sminfo(8) said of it, and what follows from one answer after the other. An
// answer that could not be had is not a manager that is gone: whoever asks may have lost his own link. Pure:
// no clock, no processes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/command.hpp"
#include "common/result.hpp"

namespace banyan::fault {

struct manager_id {
    std::uint64_t guid = 0;  ///< of its port
    std::uint32_t lid = 0;
    /// "LID 3 (0x0000000000100003)".
    std::string text() const;
    bool operator==(const manager_id& o) const { return guid == o.guid; }
};

/// One answer.
struct manager_look {
    enum class said : std::uint8_t {
        master,   ///< `who` is
        other,    ///< somebody answers who is none: `words` has his state
        nobody,   ///< no answer from the LID that the port has for it, or the port has none
        unknown,  ///< it could not be asked; `words` says why
    } answer = said::unknown;
    manager_id who;
    std::string words;
};

/// "sminfo: sm lid 1 sm guid 0x100001, activity count 59 priority 5 state 3 SMINFO_MASTER"
manager_look read_sminfo(const result<command_output>& ran);

/// What the controller is told. `who` is the manager that it speaks of: the culprit, or the one that is well.
struct manager_news {
    enum class kind : std::uint8_t {
        master,    ///< `who` is master; so it was before, or it is the first one that was seen
        silent,    ///< nobody is master any more; `who` was
        replaced,  ///< `next` is master, `who` was
    } what = kind::master;
    manager_id who, next;
    std::string words;
};

/// Follows the answers. Silence becomes news when it has lasted for `grace_ms`, and when `fabric_seen` says
/// that the fabric can be looked at from here.
class manager_memory {
  public:
    explicit manager_memory(std::int64_t grace_ms) : grace_ms_(grace_ms) {}

    /// News, if the answer is any.
    std::optional<manager_news> take(const manager_look& look, std::int64_t now_ms);
    /// It has been silent for long enough: whoever sees the fabric may call tell_silence().
    bool is_overdue(std::int64_t now_ms) const;
    std::optional<manager_news> tell_silence();
    bool is_silent() const { return silent_since_ms_ != 0; }

  private:
    std::int64_t grace_ms_;
    std::optional<manager_id> master_;
    std::int64_t silent_since_ms_ = 0;  // 0: it answers
    bool told_ = false;                 // ... and that was told
    std::string words_;
};

}  // namespace banyan::fault
