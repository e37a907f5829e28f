// SPDX-License-Identifier: BSD-3-Clause
//
// munge credentials: who is the peer, as the cluster's shared key vouches for it. Blocking (a local socket,
// well under a millisecond): from a daemon call through run_blocking. Thread-safe: every call has a context
// of its own.
#pragma once

#include <optional>
#include <string>

#include <sys/types.h>

#include "common/result.hpp"

namespace banyan::munge {

struct credential {
    std::string payload;
    uid_t uid = 0;
    gid_t gid = 0;
};

/// `socket` empty = munged's default socket. With `reader` only that user (and, where munged is built so,
/// root) can decode the credential.
result<std::string> encode(const std::string& socket, const std::string& payload,
                           std::optional<uid_t> reader = {});
/// For anybody to read, with the payload compressed. exhausted: more than munge takes, 1 MiB in all.
result<std::string> encode_compressed(const std::string& socket, const std::string& payload);
/// Verifies, refuses replays and expired credentials.
result<credential> decode(const std::string& socket, const std::string& text);
/// Verifies who wrote it, whenever that was and however often it was read: for what is kept. What keeps it
/// from being used elsewhere must stand in the payload.
result<credential> decode_kept(const std::string& socket, const std::string& text);

}  // namespace banyan::munge
