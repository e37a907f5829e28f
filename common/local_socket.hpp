// SPDX-License-Identifier: BSD-3-Clause
//
// A daemon's side of a Unix socket to which every user may connect. A message there can carry descriptors,
// and whoever drops the last reference to one does what closing it takes: of a TCP socket with SO_LINGER that
// is as long a wait as its owner has chosen, before recv() or close() of *our* thread returns. So we take
// none, and drop none on a thread that others wait for.
#pragma once

#include <cstddef>
#include <span>

#include "common/fd.hpp"
#include "common/result.hpp"

namespace banyan {

/// Before listen(): nobody can send descriptors to `listener`'s connections. False where the kernel cannot do
/// that (before Linux 6.16); the other two functions help there too.
bool refuse_descriptors(int listener);

/// Reads at most into.size() bytes that carry no descriptors, without waiting. 0 at the end of the stream;
/// errc::unavailable with nothing to read now, errc::denied where descriptors come next, and they stay
/// unread.
result<std::size_t> receive_plain(int connection, std::span<std::byte> into);

/// Sends what can be sent now of `data` (not empty) with a copy of the descriptor `passed`, and returns how
/// much that was. errc::unavailable with no room now.
result<std::size_t> send_with_descriptor(int connection, std::span<const std::byte> data, int passed);

/// Shuts a connection down and closes it. What is unread and carries descriptors is dropped on a thread that
/// nobody waits for.
void close_apart(unique_fd connection);

}  // namespace banyan
