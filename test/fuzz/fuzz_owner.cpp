// SPDX-License-Identifier: BSD-3-Clause
//
// The claim of a checkpoint directory, OWNER.N, as its owner, who is any user, may have written it.
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/store/owner.hpp"
#include "common/text.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using fuzz::must;

namespace {

/// In memory; taken away at the end.
struct directory {
    std::string path = fmt::format("/dev/shm/banyan-fuzz-owner-{}", ::getpid());
    directory() { std::filesystem::create_directories(path); }
    ~directory() {
        std::error_code ignored;
        std::filesystem::remove_all(path, ignored);
    }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const directory dir;
    static const ckpt::storage_user user{::getuid(), ::getgid(), {}};
    std::ofstream(dir.path + "/OWNER.7", std::ios::binary | std::ios::trunc)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
    const auto owner = ckpt::read_owner(user, dir.path);
    if (!owner) return 0;
    // A file that makes no sense is a claim all the same: of somebody who is not known.
    must(owner->has_value() && (*owner)->number == 7);
    must(is_printable((*owner)->node) && (*owner)->nodes.size() <= 4096);
    for (const auto& [name, addr] : (*owner)->nodes)
        must(!name.empty() && is_printable(name) &&
             addr.find_first_not_of("0123456789abcdefABCDEF.:") == addr.npos);
    (void)ckpt::judge_owner(*owner, (*owner)->job, (*owner)->generation);
    return 0;
}
