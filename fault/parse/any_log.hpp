// SPDX-License-Identifier: BSD-3-Clause
//
// A log of whatever format, told or guessed: lines in, events out. A file has one format: the first line that
// has the form of one decides, so that no later line can be taken for another's. Files with the lines of many
// hosts (rsyslog, Fluent Bit) are read for each host by itself. Pure.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/result.hpp"
#include "fault/parse/reading.hpp"
#include "fault/sources/kernel_log.hpp"

namespace banyan::fault {

enum class log_format : std::uint8_t {
    guess,
    kmsg,    ///< records of /dev/kmsg, dmesg's lines
    syslog,  ///< "DATE HOST kernel: ", believed: the file receives facility kern and nothing else
    json,    ///< journalctl -o json, Fluent Bit
    opensm,
    ufm,
    fabric_manager,
    nccl
};
result<log_format> log_format_from(std::string_view name);
std::string_view name_of(log_format f);

class any_log {
  public:
    struct counters {
        std::uint64_t lines = 0, events = 0;
        std::uint64_t foreign = 0;  ///< not of the format's form
        std::uint64_t refused = 0;  ///< looks like a fault, but users may have written it
    };
    using sink = std::function<void(const reading&)>;

    /// `branch`: of the GPU driver whose lines come, such as 570, until it says so itself; 0: not known.
    explicit any_log(log_format format, std::uint32_t branch = 0) : format_(format), branch_(branch) {}

    void line(std::string_view raw, const sink& out);
    log_format format() const { return format_; }
    const counters& seen() const { return seen_; }

  private:
    struct host {
        kernel_log log;
        kernel_parser parser;
    };
    host& host_of(std::string_view name);
    void guess(std::string_view raw);
    bool read(std::string_view raw, const sink& out);
    bool kernel(std::string_view raw, const sink& out);
    bool json(std::string_view raw, const sink& out);
    void give(host& from, std::string_view text, const std::string& node, const std::string& time,
              const sink& out);

    static constexpr std::size_t max_hosts = 65'536;
    log_format format_;
    std::uint32_t branch_;
    opensm_parser opensm_;
    std::map<std::string, host, std::less<>> hosts_;
    counters seen_;
};

}  // namespace banyan::fault
