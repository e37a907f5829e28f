// SPDX-License-Identifier: BSD-3-Clause
#include "common/limits.hpp"

#include <cerrno>

#include <fmt/format.h>
#include <sys/resource.h>

namespace banyan {

result<std::size_t> raise_descriptor_limit(std::size_t needed) {
    rlimit files{};
    if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return fail_errno("cannot read RLIMIT_NOFILE", errno);
    if (files.rlim_cur < files.rlim_max) {
        const auto before = files.rlim_cur;
        files.rlim_cur = files.rlim_max;
        if (::setrlimit(RLIMIT_NOFILE, &files) != 0) files.rlim_cur = before;
    }
    if (files.rlim_cur >= needed) return static_cast<std::size_t>(files.rlim_cur);
    return fail(errc::exhausted,
                fmt::format("this process may open {} files, {} are needed", files.rlim_cur, needed),
                "raise LimitNOFILE= in the unit, or ulimit -Hn");
}

}  // namespace banyan
