// SPDX-License-Identifier: BSD-3-Clause
//
// What was built, and where it is installed: one source for the programs' defaults and, in cmake/, for the
// units and samples.
#pragma once

#include <string>

namespace banyan {

/// "banyan-topo 0.1.0 (Slurm 22.05.8)": what --version prints.
std::string version_line(const std::string& program);

/// Where daemons and helpers are, such as "/usr/libexec/banyan".
extern const char* const libexec_dir;
/// What training processes load, such as "/usr/lib/x86_64-linux-gnu/libbanyan_ckpt.so.0".
extern const char* const checkpoint_library;
/// Where the runbooks and other pages are, such as "/usr/share/doc/banyan".
extern const char* const doc_dir;

}  // namespace banyan
