// SPDX-License-Identifier: BSD-3-Clause
//
// Whose error ended a step: the program's own, which comes again at each start, or one of a device or of a
// lost rank, for which a step is started again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace banyan::supervisor {

/// What an exception of Python accuses.
enum class blame : std::uint8_t {
    code,     ///< the text of the program: the same input gives the same error, whatever the nodes do
    program,  ///< the program, but input, memory or storage may have had a part in it
    device,   ///< a GPU
    peer,     ///< another rank or the network: what the other ranks see of one that ended
    nobody    ///< it repeats, or is, the end of another process
};

/// `type` as Python prints it, with or without its module; `text`: the first line behind it.
blame blame_of(std::string_view type, std::string_view text);

/// What a step's output tells of its end. All false and empty: nothing that is sure.
struct failure {
    bool own = false;      ///< the program ended itself
    bool of_code = false;  ///< by an error of blame::code
    std::string kind;      ///< the error's type, to be compared with that of another step
    std::string words;  ///< which task was the first, on which node, and the first error; a few hundred bytes
};

}  // namespace banyan::supervisor
