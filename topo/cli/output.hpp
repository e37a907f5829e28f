// SPDX-License-Identifier: BSD-3-Clause
//
// Where a subcommand's result goes: a file that is replaced whole, or what a path leads to that is no file.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace banyan::topo::cli {

/// Replaces the file `path` atomically. A device, FIFO or other such thing gets the text as a shell's > would
/// give it, and stays what it is; a symbolic link to a file is refused. An empty path is standard output.
result<void> write_output(const std::string& path, std::string_view text);

/// For CLI11: an output that was given has a name, also where a script's variable is empty.
std::string named_file(const std::string& path);

/// Whether write_output() would send it on instead of replacing a file: then standard output may be the very
/// same, and what a person is told belongs on standard error.
bool is_stream(const std::string& path);

/// Whether both name the file that write_output() would replace: then one text would replace the other. Not
/// where it sends them on.
bool same_output(const std::string& a, const std::string& b);

/// What standard output still holds is written; an error where any of it was lost.
result<void> finish_stdout();

}  // namespace banyan::topo::cli
