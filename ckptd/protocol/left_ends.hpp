// SPDX-License-Identifier: BSD-3-Clause
//
// The ends of jobs that a daemon could not be told of, since it was being started again: files beside its
// socket, until it is back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace banyan::ckpt {

/// Whether somebody, a daemon or its keeper, holds the memory of the socket's jobs.
bool is_held(const std::string& socket);
/// Where that fails the job's memory stays until its session is closed: nobody can be told.
void leave_end(const std::string& socket, std::uint64_t job);
void forget_end(const std::string& socket, std::uint64_t job);
/// The jobs, whose files are gone then. Nothing is heard of files that others than root or the caller could
/// have written.
std::vector<std::uint64_t> take_ends(const std::string& socket);

}  // namespace banyan::ckpt
