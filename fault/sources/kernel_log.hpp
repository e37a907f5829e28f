// SPDX-License-Identifier: BSD-3-Clause
//
// Which lines of a kernel log the kernel itself said. Users put text of their own into it: the names of
// programs and files (segfault, OOM killer), also with line feeds in them, and, in files, whatever
// `logger -t kernel` writes. So a text is believed only from its record's first byte on, and only in a record
// that users cannot write. Pure: no clock, no files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace banyan::fault {

/// What is believed beside the kernel's own records; each includes the one before.
enum class kmsg_trust : std::uint8_t {
    kernel,    ///< records of facility kern: of the device, or in a file with their heads or time stamps
    syslog,    ///< files with "DATE HOST kernel: ": only for one that receives facility kern and nothing else
    injected,  ///< root's own writes to the device, and lines with no head at all: drills and tests
};
result<kmsg_trust> kmsg_trust_from(std::string_view name);
std::string_view name_of(kmsg_trust trust);

/// One log, one of these: feed every line in order.
class kernel_log {
  public:
    using sink = std::function<void(std::string_view text)>;
    struct outcome {
        bool dirty = false;    ///< had bytes that were replaced
        bool refused = false;  ///< begins as a fault does, but this configuration does not believe it
    };

    /// `device`: the lines are records of /dev/kmsg, which always have a head.
    kernel_log(kmsg_trust trust, bool device) : trust_(trust), device_(device) {}

    /// Gives each text to `out` that the kernel said, from its first byte on.
    outcome read(std::string_view raw, const sink& out);
    bool of_device() const { return device_; }

    /// What the head of a line says, whether it is believed or not.
    struct origin {
        bool formed = false;          ///< it has the form of a kernel log's line
        std::string_view host, time;  ///< as printed; empty when there is none
    };
    static origin origin_of(std::string_view raw);
    static bool has_form(std::string_view raw) { return origin_of(raw).formed; }
    /// Those lines of a record's text that the kernel itself wrote.
    static void lines_of_record(std::string_view text, const sink& out);

  private:
    // How the lines of a file begin. A file has one form: where a stamp or head was seen, a line of another
    // form is the rest of a record with a line feed in it.
    enum class form : std::uint8_t { unknown, headed, stamped, syslog, plain };
    struct parted {
        form how = form::plain;
        std::string_view stamp, text;  // stamp: the kernel's microseconds, as printed
        std::uint32_t facility = 0;
        std::string_view host = {}, date = {};
    };
    static parted part(std::string_view line);
    bool believes(const parted& line) const;

    kmsg_trust trust_;
    bool device_;
    form form_ = form::unknown;
    std::string last_stamp_;
    bool last_was_fault_ = false;  // the line before was a fault's own: another may carry the same stamp
};

}  // namespace banyan::fault
