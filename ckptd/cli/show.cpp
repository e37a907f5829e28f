// SPDX-License-Identifier: BSD-3-Clause
//
// What lies in storage, by manifests and by the headers of the files. Nothing is held but one rank's header:
// whoever wrote the directory may be anybody.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "ckptd/cli/commands.hpp"
#include "ckptd/protocol/state_name.hpp"
#include "ckptd/store/milestones.hpp"
#include "common/text.hpp"

namespace banyan::ckpt::cli {
namespace {

using json = nlohmann::ordered_json;

std::string to_text(const json& j) { return j.dump(-1, ' ', true, json::error_handler_t::replace); }

// One step: what its manifest says, and the first thing that is wrong with it or keeps one from looking.
struct inspected {
    step_summary summary;
    std::optional<error> damage;
    const char* state() const { return damage ? state_by(*damage) : "complete"; }
};

// Manifest, sizes and headers; verify reads every byte. `each` gets what stands up to that.
inspected inspect(const std::string& dir, std::uint64_t step,
                  const std::function<void(const shard_file&, const image_contents&)>& each) {
    inspected out;
    const auto head = scan_step(myself(), dir, step, 0);
    if (!head) {
        out.damage = head.error();
        return out;
    }
    out.summary = *head;
    const auto file = [&](const shard_file& f) {
        const auto contents = read_shard_header(myself(), dir, step, f);
        if (contents)
            each(f, *contents);
        else if (!out.damage)
            out.damage = contents.error();
    };
    const auto again = scan_step(myself(), dir, step, 0, file);
    if (!again) out.damage = again.error();
    return out;
}

json describe(std::uint64_t step, const inspected& found, const std::vector<std::string>& names = {}) {
    json out;
    out["step"] = step;
    if (!names.empty()) out["milestones"] = names;
    out["state"] = found.state();
    if (found.damage) out["damage"] = printable(found.damage->what);
    if (found.summary.world == 0) return out;
    out["job"] = found.summary.job;
    out["generation"] = found.summary.generation;
    out["world"] = found.summary.world;
    out["bytes"] = found.summary.bytes;
    return out;
}

json describe(const shard_file& f, const image_contents& contents) {
    json regions = json::array();
    for (const auto& r : contents.regions) {
        json one{{"name", r.name}, {"dtype", r.dtype}, {"shape", r.shape}, {"bytes", r.bytes}};
        if (r.part) {
            one["global_shape"] = r.part->global_shape;
            one["offset"] = r.part->begin;
        }
        regions.push_back(std::move(one));
    }
    json out{
        {"rank", f.rank}, {"file", shard_name(f.rank)}, {"bytes", f.bytes}, {"regions", std::move(regions)}};
    if (f.pieces_in) out["pieces_in"] = *f.pieces_in;
    return out;
}

void print_rank(const shard_file& f, const image_contents& contents) {
    fmt::print("rank {}: {} regions, {}\n", f.rank, contents.regions.size(), format_bytes(f.bytes));
    if (f.pieces_in)
        fmt::print("  its parts of tensors are those of rank {}, whose file has them\n", *f.pieces_in);
    for (const auto& r : contents.regions) {
        auto shape = fmt::format("[{}]", fmt::join(r.shape, ","));
        if (r.part)
            shape += fmt::format(" at [{}] of [{}]", fmt::join(r.part->begin, ","),
                                 fmt::join(r.part->global_shape, ","));
        const auto said = fmt::format("{:<8} {:>10}  {}", r.dtype, format_bytes(r.bytes), fitted(shape, 40));
        fmt::print("  {:<62} {}\n", said, fitted(r.name, 34));
    }
}

void print_step(std::uint64_t step, const inspected& found, const std::vector<std::string>& names = {}) {
    const auto& s = found.summary;
    if (s.world == 0)
        fmt::print("{:>12}  {}\n", step, found.state());
    else
        fmt::print("{:>12}  {:<8}  job {}  {} ranks  {}{}\n", step, found.state(), s.job, s.world,
                   format_bytes(s.bytes), names.empty() ? "" : fmt::format("  {}", fmt::join(names, ", ")));
    if (found.damage) fmt::print("{:>12}  {}\n", "", printable(found.damage->what));
}

// Other states of the job, which lie below; at most so many as a few jobs can have left.
std::vector<std::string> states_in(const std::string& dir) {
    constexpr std::size_t most = 64;
    std::vector<std::string> out;
    std::error_code none;
    for (std::filesystem::directory_iterator at(dir + "/states", none), end; at != end && out.size() < most;
         at.increment(none)) {
        auto name = at->path().filename().string();
        if (is_state_name(name)) out.push_back(std::move(name));
        if (none) break;
    }
    std::sort(out.begin(), out.end());
    return out;
}

void print_state(const std::string& dir, const std::string& name) {
    const auto where = fmt::format("{}/states/{}", dir, name);
    const auto steps = list_steps(myself(), where);
    const auto newest = !steps           ? steps.error().what
                        : steps->empty() ? std::string("no committed step")
                                         : fmt::format("newest step {}", steps->front());
    fmt::print("state {}: {}, in {}\n", name, printable(newest), printable(where));
}

int show_directory(const std::string& dir, bool as_json) {
    const auto steps = steps_in(dir);
    if (!steps) return complain(steps.error());
    const auto states = states_in(dir);
    if (steps->empty() && states.empty())
        return complain({errc::not_found, fmt::format("no committed step in {}", dir), ""});
    const auto asked = list_milestones(myself(), dir);
    if (!asked) complain(asked.error());
    auto named = assign_milestones(asked.value_or(milestones()), *steps);
    bool whole = asked.has_value();
    const char* separator = "";
    if (as_json) fmt::print("{{\"directory\":{},\"steps\":[", to_text(dir));
    for (const auto step : *steps) {
        const auto found = inspect(dir, step, [](const shard_file&, const image_contents&) {});
        if (found.damage && !is_listed(dir, step)) continue;
        whole = whole && !found.damage;
        if (as_json)
            fmt::print("{}{}", std::exchange(separator, ","), to_text(describe(step, found, named.at[step])));
        else
            print_step(step, found, named.at[step]);
    }
    if (as_json)
        fmt::print("],\"pending_milestones\":{},\"states\":{}}}\n", to_text(named.pending), to_text(states));
    for (const auto& [name, from] : named.pending)
        if (!as_json)
            fmt::print("milestone {}: the first step from {} on that reaches storage\n", name, from);
    for (const auto& name : states)
        if (!as_json) print_state(dir, name);
    return whole ? 0 : 1;
}

int show_step(const std::string& dir, std::uint64_t step, std::optional<std::uint32_t> rank, bool as_json) {
    const char* separator = "";
    if (as_json) fmt::print("{{\"directory\":{},\"ranks\":[", to_text(dir));
    const auto found = inspect(dir, step, [&](const shard_file& f, const image_contents& contents) {
        if (rank && f.rank != *rank) return;
        if (as_json)
            fmt::print("{}{}", std::exchange(separator, ","), to_text(describe(f, contents)));
        else
            print_rank(f, contents);
    });
    if (as_json)
        fmt::print("],{}\n", to_text(describe(step, found)).substr(1));
    else
        print_step(step, found);
    if (rank && found.summary.world != 0 && *rank >= found.summary.world)
        return complain({errc::not_found,
                         fmt::format("step {} has {} ranks, no rank {}", step, found.summary.world, *rank),
                         ""});
    return found.damage ? 1 : 0;
}

}  // namespace

int show(const std::string& path, std::optional<std::uint32_t> rank, bool as_json) {
    const auto which = parse_path(path);
    if (which.step) return show_step(which.dir, *which.step, rank, as_json);
    if (rank)
        return complain(
            {errc::invalid_input, "--rank is of one step", "give the step's folder: DIR/step-..."});
    return show_directory(which.dir, as_json);
}

}  // namespace banyan::ckpt::cli
