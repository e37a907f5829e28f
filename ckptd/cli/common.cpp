// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/cli/commands.hpp"
#include "ckptd/store/milestones.hpp"
#include "ckptd/store/steps.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"

namespace banyan::ckpt::cli {

int complain(const error& e) {
    std::fflush(stdout);  // in the order in which things were found
    std::fprintf(stderr, "banyan-ckpt: %s\n", printable(e.text()).c_str());
    return e.code == errc::invalid_input ? 2 : 1;
}

error on_a_node(error e) {
    if (e.hint.empty())
        e.hint = "a daemon runs on each node of a job: srun --jobid=JOB --overlap banyan-ckpt status";
    return e;
}

storage_user user_of(const std::string& dir) {
    struct stat st {};
    if (::geteuid() != 0 || ::stat(dir.c_str(), &st) != 0) return myself();
    return {st.st_uid, st.st_gid, {st.st_gid}};
}

// By the path's last part alone: what ".." before it means, links decide.
step_path parse_path(const std::string& path) {
    auto bare = path;
    while (bare.size() > 1 && bare.back() == '/') bare.pop_back();
    std::filesystem::path whole(bare);
    std::error_code none;
    if (whole.filename() == "." || whole.filename() == "..") whole = std::filesystem::canonical(whole, none);
    if (const auto named = milestone_of(whole.string()))
        if (const auto is = find_milestone(myself(), *named)) return {named->dir, *is};
    const auto step = step_of(whole.filename().string());
    if (none || !step) return {path, {}};
    return {whole.has_parent_path() ? whole.parent_path().string() : ".", step};
}

result<std::vector<std::uint64_t>> steps_in(const std::string& dir) {
    BANYAN_CHECK(open_for_reading(dir));
    return list_steps(myself(), dir);
}

const char* state_by(const error& why) { return was_seen(why) ? "damaged" : "unknown"; }

bool is_listed(const std::string& dir, std::uint64_t step) {
    const auto steps = list_steps(myself(), dir);
    return !steps || std::find(steps->begin(), steps->end(), step) != steps->end();
}

// A character from Hangul on may be two columns wide.
std::string fitted(std::string_view text, std::size_t columns) {
    const auto shown = printable(text);
    std::string out;
    std::size_t used = 0;
    for (std::string_view rest = shown; !rest.empty();) {
        const auto c = first_character(rest);
        const std::size_t wide = c.code >= 0x1100 ? 2 : 1;
        const auto room = columns - (rest.size() > c.bytes ? 3 : 0);
        if (used + wide > room) {
            // What is left may still fit as a whole.
            std::size_t all = used;
            for (auto end = rest; !end.empty() && all <= columns;) {
                const auto e = first_character(end);
                all += e.code >= 0x1100 ? 2 : 1;
                end.remove_prefix(e.bytes);
            }
            return all <= columns ? out + std::string(rest) : out + "...";
        }
        out += rest.substr(0, c.bytes);
        used += wide;
        rest.remove_prefix(c.bytes);
    }
    return out;
}

}  // namespace banyan::ckpt::cli
