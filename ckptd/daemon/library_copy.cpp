// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/library_copy.hpp"

#include <spdlog/spdlog.h>
#include <sys/statvfs.h>

#include "common/file.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::size_t max_library = 64u << 20;

bool is_noexec(const std::filesystem::path& folder) {
    struct statvfs of {};
    return ::statvfs(folder.c_str(), &of) == 0 && (of.f_flag & ST_NOEXEC) != 0;
}

}  // namespace

void put_library_beside(const std::string& socket, const std::filesystem::path& library) {
    const auto folder = std::filesystem::path(socket).parent_path();
    const auto copy = folder / library.filename();
    const auto text = read_file(library, max_library);
    if (!text)
        return spdlog::info("containers have to bring the library themselves: {}", text.error().text());
    if (const auto there = read_file(copy, max_library); !there || *there != *text) {
        if (const auto put = write_file_atomic(copy, *text); !put)
            return spdlog::warn("containers have to bring the library themselves: {}", put.error().text());
    }
    if (is_noexec(folder))
        spdlog::info("{} is mounted noexec: what links the library cannot load it from there",
                     folder.string());
}

}  // namespace banyan::ckpt
