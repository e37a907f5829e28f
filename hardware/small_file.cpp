// SPDX-License-Identifier: BSD-3-Clause
#include "hardware/small_file.hpp"

#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "common/fd.hpp"
#include "common/text.hpp"

namespace banyan::hardware {

result<std::string> read_small(const std::filesystem::path& path, std::size_t most) {
    const unique_fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!fd) return fail_errno("cannot open " + path.string(), errno);
    struct stat st {};
    if (::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode))
        return fail(errc::invalid_input, path.string() + " is no file");
    std::string out(most + 1, '\0');
    std::size_t have = 0;
    while (have < out.size()) {
        const auto got = ::read(fd.get(), out.data() + have, out.size() - have);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_errno("cannot read " + path.string(), errno);
        if (got == 0) break;
        have += static_cast<std::size_t>(got);
    }
    if (have > most)
        return fail(errc::exhausted, fmt::format("{} is larger than {} bytes", path.string(), most));
    out.resize(have);
    return std::string(trim(out));
}

}  // namespace banyan::hardware
