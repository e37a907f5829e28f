// SPDX-License-Identifier: BSD-3-Clause
//
// This node's checkpoint daemon as the plugin sees it: where it listens, how it is started where no service
// does, and how a job gets its session there. Knows no Slurm. All of it blocks; call it from a prolog.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "ckptd/protocol/protocol.hpp"
#include "common/plugstack_arguments.hpp"
#include "common/result.hpp"

namespace banyan::spank {

/// Arguments of the line in plugstack.conf.
using settings = plugstack_arguments;

struct daemon_paths {
    std::string config;
    std::string socket;
    std::string agent;  ///< where the node's fault agent listens
    std::string node;
};
/// banyan.conf as root reads it in slurmd's and slurmstepd's hooks: never one that the environment names.
/// Empty when there is none.
std::string config_of(const settings& s);

/// The paths of this node's checkpoint daemon, as banyan.conf names them. Reads that file, which may lie on a
/// file system that hangs: to be called while a step begins, never while it ends.
result<daemon_paths> find_daemon(const settings& s, const std::string& node);

/// Somebody listens on its socket.
bool daemon_answers(const daemon_paths& paths);

/// Opens `request` at this node's daemon and returns its answer once the session's memory is ready. Where no
/// daemon answers one is started, outside the job, bound to `address`. A daemon that leaves in this very
/// moment, since the job before was its last, is followed by a new one. Gives up after `timeout`, and at once
/// where the daemon ends instead of answering: the error then has its words.
result<ckpt::session_answer> open_at_daemon(const settings& s, const daemon_paths& paths,
                                            const std::string& address, const ckpt::session_request& request,
                                            std::chrono::milliseconds timeout);

}  // namespace banyan::spank
