// SPDX-License-Identifier: BSD-3-Clause
//
// libbanyan_ckpt, opened at run time: the package installs and imports where there is none.
#pragma once

#include <cstdint>
#include <string>

#include <banyan/ckpt.h>

namespace banyan::python {

/// The functions of the C library.
struct library {
// clang-format off
#define BANYAN_CKPT_NEEDED(F)                                                                                  \
    F(bck_init) F(bck_checkpoint_of) F(bck_reserve) F(bck_wait) F(bck_restart_query) F(bck_restart_into)       \
    F(bck_stat) F(bck_contents_step) F(bck_contents_size) F(bck_contents_at) F(bck_contents_free)              \
    F(bck_reader_open) F(bck_reader_step) F(bck_reader_world) F(bck_reader_stat) F(bck_reader_fill)            \
    F(bck_reader_open_job) F(bck_reader_close) F(bck_checkpoint_begin) F(bck_checkpoint_end)                   \
    F(bck_seal_requested) F(bck_heartbeat) F(bck_milestone) F(bck_finalize) F(bck_error) F(bck_version)
// clang-format on
#define BANYAN_CKPT_MEMBER(name) decltype(&::name) name = nullptr;
    BANYAN_CKPT_NEEDED(BANYAN_CKPT_MEMBER)
#undef BANYAN_CKPT_MEMBER
};

/// Opens `path`, once for the process. Throws Python's ImportError, which names the file, where it is not
/// there, lacks a function or is of another release.
void open_library(const std::string& path);

/// The opened library. Throws std::runtime_error before open_library.
const library& lib();

/// What the last call of this thread answered.
struct answer {
    int code = 0;
    std::string error;  ///< in words; "" where the code is 0
};
answer answer_of(int code);

}  // namespace banyan::python
