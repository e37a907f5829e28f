// SPDX-License-Identifier: BSD-3-Clause
//
// What stands behind spank_banyan.so in plugstack.conf: the plugin goes by it, and banyan-doctor looks
// whether it can.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace banyan {

struct plugstack_arguments {
    std::string config;  ///< banyan.conf; empty = /etc/banyan/banyan.conf
    std::string ckptd;   ///< the checkpoint daemon's program; empty = installed_daemon()
    std::string ckptd_log = "/var/log/banyan/ckptd.log";  ///< its log file, %n = node; empty = none
    std::vector<std::string> ignored;                     ///< words that are none of these, as they stand

    static plugstack_arguments from(std::span<const std::string> words);
    /// The program that a prolog starts.
    std::string program() const { return ckptd.empty() ? installed_daemon() : ckptd; }
    /// The daemon's program where it was installed with the plugin.
    static std::string installed_daemon();
};

/// "did you mean config=?", or which there are.
std::string plugstack_hint(std::string_view ignored);

}  // namespace banyan
