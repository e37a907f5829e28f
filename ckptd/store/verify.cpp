// SPDX-License-Identifier: BSD-3-Clause
//
// Whether a step in storage is whole, file by file: its COMMIT tells only that it once was.
#include "ckptd/store/store.hpp"

namespace banyan::ckpt {

result<step_summary> verify_step(const storage_user& user, const std::string& dir, std::uint64_t step,
                                 std::uint32_t world, const std::function<bool(std::uint32_t rank)>& mine) {
    // What the manifest says counts only when all of it stands, so it is read first and again for the files:
    // checksums of all ranks at once could be more than fits in memory.
    BANYAN_TRY(const auto head, scan_step(user, dir, step, world));
    std::vector<shard_file> batch;
    result<void> whole;
    std::uint32_t next = 0;
    constexpr std::size_t in_batch = 64;
    while (whole && next < head.world) {
        batch.clear();
        const auto keep = [&](const shard_file& f) {
            if (f.rank >= next && batch.size() < in_batch && (!mine || mine(f.rank))) batch.push_back(f);
        };
        BANYAN_CHECK(scan_step(user, dir, step, world, keep));
        for (const auto& f : batch)
            if (whole) whole = check_shard(user, dir, step, f);
        next = batch.size() < in_batch ? head.world : batch.back().rank + 1;
    }
    if (!whole) return std::unexpected(whole.error());
    return head;
}

result<std::optional<step_summary>> newest_whole_step(
    const storage_user& user, const std::string& dir, std::uint32_t world, std::optional<std::uint64_t> below,
    const std::function<void(std::uint64_t step, const error& why)>& damaged) {
    BANYAN_TRY(const auto steps, list_steps(user, dir));
    for (const auto step : steps) {
        if (below && step >= *below) continue;
        auto whole = verify_step(user, dir, step, world);
        if (whole) return std::optional(*whole);
        if (!was_seen(whole.error())) return std::unexpected(whole.error());
        damaged(step, whole.error());
    }
    return std::optional<step_summary>();
}

}  // namespace banyan::ckpt
