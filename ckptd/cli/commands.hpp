// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-ckpt can do; each returns the exit status.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ckptd/store/store.hpp"

namespace banyan::ckpt::cli {

/// Prints the error; 2 for what the user wrote wrongly, else 1.
int complain(const error& e);
/// With what to do where no daemon answered.
error on_a_node(error e);
/// Who changes something in a checkpoint directory: root does it in the name and with the rights of whose it
/// is.
storage_user user_of(const std::string& dir);

/// A checkpoint directory, or one step of it where the path's last part is a step's name, or where it is a
/// milestone.
struct step_path {
    std::string dir;
    std::optional<std::uint64_t> step;
};
step_path parse_path(const std::string& path);
/// The steps that are committed in a directory, which is to be there: one that is not mounted has not none.
result<std::vector<std::uint64_t>> steps_in(const std::string& dir);
/// Of a step that cannot be read: "damaged" when that was seen, else "unknown".
const char* state_by(const error& why);
/// Whether a step is still one of the directory's: a job that runs removes its older ones.
bool is_listed(const std::string& dir, std::uint64_t step);
/// Text of somebody else's, in at most so many columns.
std::string fitted(std::string_view text, std::size_t columns);

int status(const std::string& socket, bool as_json);
int seal(const std::string& socket, std::uint64_t job);
/// Without end, or `count` times.
int watch(const std::string& socket, std::chrono::milliseconds every, std::uint64_t count);

int list(const std::string& dir);
int verify(const std::string& dir, const std::string& which);
int show(const std::string& path, std::optional<std::uint32_t> rank, bool as_json);
int export_step(const std::string& path, const std::string& to, std::optional<std::uint32_t> rank,
                bool replace);
int drop(const std::string& path, bool force);
int milestone(const std::string& path, const std::string& name);
int restore(const std::string& path, bool force);

}  // namespace banyan::ckpt::cli
