// SPDX-License-Identifier: BSD-3-Clause
//
// Who may write in a checkpoint directory: one job at a time, and of a job its newest generation.
//
//     DIR/OWNER.7      the claim with the highest number counts
//
// A first line of fixed length, and a second one with the nodes on which the job's state is kept in memory,
// for a start of the same job on others. The file is the user's: what it says of nodes is checked by asking
// them.
//
// A claim is made by creating the next number's file exclusively, which every file system does for one caller
// alone: so of several that want to take over one succeeds, and the former owner finds that its number is no
// longer the highest. It shows that it lives by a beat, rewritten in place (in place: a full disk does not
// stop it, and a file that was taken away does not come back). A newcomer watches the beat by its own clock:
// clocks of two nodes are never compared. All calls block.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "ckptd/store/as_user.hpp"
#include "common/result.hpp"

namespace banyan::ckpt {

/// What stands in the newest OWNER file.
struct owner_record {
    std::uint64_t number = 0;
    std::uint64_t job = 0;  ///< 0: being written just now, or damaged
    std::uint64_t generation = 0;
    std::string node;
    std::uint64_t beat_ms = 0;  ///< how often the beat changes
    std::uint64_t beat = 0;
    bool released = false;                       ///< its job ended, or left, in order
    bool ending = false;                         ///< its job has left; the newest step is on its way here
    std::map<std::string, std::string> nodes{};  ///< name and numeric address; none is no word on them
    bool operator==(const owner_record&) const = default;
};

/// A directory that is ours, as long as check_claim() says so.
struct claim {
    std::string dir;
    std::uint64_t number = 0;
    std::uint64_t job = 0;
    std::uint64_t generation = 0;
    std::string node;
    std::uint64_t beat_ms = 0;
    std::uint64_t beat = 0;
    bool ending = false;
    std::map<std::string, std::string> nodes{};  ///< written when the claim is made
};

/// Who has the directory; nothing when it was never anybody's. A name is made and removed first, so that a
/// network file system's cache does not answer.
result<std::optional<owner_record>> read_owner(const storage_user& user, const std::string& dir);

enum class claim_verdict {
    take,   ///< nobody's, given up, or an older generation of the same job
    watch,  ///< another job's: as long as its beat changes it lives
    fenced  ///< a newer generation of the same job has it
};
claim_verdict judge_owner(const std::optional<owner_record>& owner, std::uint64_t job,
                          std::uint64_t generation);

/// Makes `wanted` the owner after `seen`, and puts away what unfinished flushes of others have left, so that
/// a commit of theirs that comes late finds nothing to rename. errc::conflict: somebody was faster; look
/// again. `wanted.number` and `.beat` are ignored.
result<claim> take_claim(const storage_user& user, const claim& wanted,
                         const std::optional<owner_record>& seen);
/// errc::conflict when another one has the directory now. To be asked before every step that cannot be
/// undone.
result<void> check_claim(const storage_user& user, const claim& c);
/// Other nodes in its second line, which must not be longer than before.
result<void> rewrite_nodes(const storage_user& user, const claim& c);
/// A sign of life. errc::conflict as above.
result<void> beat_claim(const storage_user& user, claim& c);
/// Gives the directory up: the next job need not watch.
result<void> release_claim(const storage_user& user, const claim& c);

}  // namespace banyan::ckpt
