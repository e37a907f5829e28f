// SPDX-License-Identifier: BSD-3-Clause
#include "spank/note.hpp"

#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

#include "common/file.hpp"
#include "common/text.hpp"

namespace banyan::spank {
namespace {

constexpr std::size_t most_note = 4096;

std::string note_of(const daemon_paths& paths, std::uint64_t job) {
    return fmt::format("{}.no-job-{}", paths.socket, job);
}

}  // namespace

void leave_note(const daemon_paths& paths, std::uint64_t job, const std::string& why) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(paths.socket).parent_path(), ignored);
    // Without it the user hears of the daemon's absence, not of its reason, which slurmd's log has.
    (void)write_file_atomic(note_of(paths, job), printable(why).substr(0, most_note), 0644);
}

std::string read_note(const daemon_paths& paths, std::uint64_t job) {
    const auto note = note_of(paths, job);
    if (!check_trusted(note)) return {};
    return read_file(note, most_note).value_or("");
}

void remove_note(const daemon_paths& paths, std::uint64_t job) { ::unlink(note_of(paths, job).c_str()); }

}  // namespace banyan::spank
