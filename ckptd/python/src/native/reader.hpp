// SPDX-License-Identifier: BSD-3-Clause
//
// What a step holds, as Python sees it, and the reader of a step in any layout.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <nanobind/nanobind.h>

#include "native/library.hpp"

namespace banyan::python {

/// [(name, dtype, bytes, shape, global shape or None, offset or None)]; frees the contents.
nanobind::list listed(bck_contents* contents);

class reader {
  public:
    /// Throws nothing: code() and error() say what became of it.
    static answer open(const std::string& dir, std::optional<std::uint64_t> step, reader& into);
    static answer open_job(reader& into);
    bck_reader* get() const { return of_.get(); }
    void close() { of_.reset(); }

  private:
    struct closer {
        void operator()(bck_reader* of) const { lib().bck_reader_close(of); }
    };
    std::unique_ptr<bck_reader, closer> of_;
};

}  // namespace banyan::python
