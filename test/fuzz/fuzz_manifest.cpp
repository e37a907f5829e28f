// SPDX-License-Identifier: BSD-3-Clause
//
// A step in storage: MANIFEST.json and COMMIT as their owner, who is any user, may have written them. The
// COMMIT is made to fit, so that the manifest is read.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/store/store.hpp"
#include "common/crc32c.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;

namespace {

constexpr std::uint64_t step = 7;

/// In memory; taken away at the end.
struct directory {
    std::string path = fmt::format("/dev/shm/banyan-fuzz-{}", ::getpid());
    directory() { std::filesystem::create_directories(ckpt::step_folder(path, step)); }
    ~directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

void write(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const directory dir;
    static const ckpt::storage_user user{::getuid(), ::getgid(), {}};
    const auto folder = ckpt::step_folder(dir.path, step);
    const auto text = fuzz::as_text(data, size);
    write(folder + "/MANIFEST.json", text);
    write(folder + "/COMMIT", fmt::format("{:08x} {}\n", crc32c(std::as_bytes(std::span(text))), step));
    std::uint32_t ranks = 0;
    const auto each = [&](const ckpt::shard_file& f) { fuzz::must(f.rank == ranks++); };
    if (const auto m = ckpt::scan_step(user, dir.path, step, 0, each)) fuzz::must(ranks == m->world);
    write(folder + "/COMMIT", text);
    (void)ckpt::scan_step(user, dir.path, step, 2);
    return 0;
}
