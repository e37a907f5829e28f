// SPDX-License-Identifier: BSD-3-Clause
//
// topo_bench: how fast the fabric model is built, and how right it is on spoilt fabrics. Prints tables, or
// with
// --json FILE the list of figures. A seed that went wrong can be looked at: --verbose names it,
// --write SEED PREFIX makes PREFIX.txt and PREFIX.json (the truth) of it.
#include "test/bench/topo_bench.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/file.hpp"

namespace banyan::topo::bench {

namespace {

result<fabric> model_of(const std::string& text, const generate::options& o) {
    BANYAN_TRY(const auto d, read_ibnetdiscover(text));
    build_options b;
    // Which HCA leads to storage is the site's to tell, as a real site would.
    if (o.storage_rail) b.site.storage_devices = {fmt::format("mlx5_{}", o.rails)};
    return build_fabric(d, b);
}

std::string label_of(const generate::options& o) {
    return fmt::format("seed {} ({} hosts of {}, {} rails, {} levels, {} planes)", o.seed, o.hosts,
                       o.group_size, o.rails, o.levels, o.planes);
}

using chosen = generate::options (*)(std::uint64_t seed);

struct seeds {
    std::uint64_t first = 1, count = 200;
};

/// Adds all of them to the scores; false where one cannot be made.
bool score_all(scores& s, chosen fabric_of, const seeds& all, bool verbose, const char* kind) {
    for (auto seed = all.first; seed < all.first + all.count; ++seed) {
        const auto o = fabric_of(seed);
        const auto made = generate::generate(o);
        if (!made) {
            fmt::print(stderr, "topo_bench: {}: {}\n", label_of(o), made.error().text());
            return false;
        }
        // A dump that the reader refuses is one of which nothing is known.
        const auto f = model_of(made->text, o);
        if (!f) fmt::print(stderr, "topo_bench: {} refused: {}\n", label_of(o), f.error().what);
        s.refused += !f;
        score(s, f ? *f : fabric{}, made->facts, kind + label_of(o), verbose && f);
    }
    return true;
}

/// How many of each family of shapes.
struct family {
    chosen fabric_of;
    std::uint64_t count;
};

bool measure_quality(banyan::bench::figures& figures, std::initializer_list<family> families,
                     std::uint64_t first, bool verbose, bool table) {
    scores s;
    std::uint64_t all = 0;
    for (const auto& each : families) {
        if (!score_all(s, each.fabric_of, {first, each.count}, verbose, "")) return false;
        all += each.count;
    }
    if (all == 0) return true;
    if (table) print_scores(s);
    add_scores(figures, s, fmt::format("{} spoilt fabrics, ", all));
    return true;
}

bool measure_clean(banyan::bench::figures& figures, std::initializer_list<family> families,
                   std::uint64_t first, bool verbose) {
    scores s;
    std::uint64_t all = 0;
    for (const auto& each : families) {
        if (!score_all(s, each.fabric_of, {first, each.count}, verbose, "clean ")) return false;
        all += each.count;
    }
    if (all == 0) return true;
    add_clean_scores(figures, s, fmt::format("{} clean fabrics,", all));
    return true;
}

int write_fabric(std::uint64_t seed, const std::string& prefix, bool other) {
    const auto o = other ? other_fabric(seed) : mixed_fabric(seed);
    const auto made = generate::generate(o);
    if (!made || !write_file_atomic(prefix + ".txt", made->text) ||
        !write_file_atomic(prefix + ".json", generate::to_json(made->facts, o))) {
        fmt::print(stderr, "topo_bench: cannot write {}.txt and .json of seed {}\n", prefix, seed);
        return 1;
    }
    fmt::print("{}\n", label_of(o));
    return 0;
}

}  // namespace
}  // namespace banyan::topo::bench

int main(int argc, char** argv) {
    using namespace banyan::topo::bench;
    CLI::App app("How fast the fabric model is built, and how right it is on spoilt fabrics.");
    std::string json;
    std::vector<std::string> lines, one, write;
    std::uint64_t fabrics = 500, others = 500, clean = 100, first = 1;
    int runs = 7;
    bool verbose = false, no_speed = false, quick = false, other = false;
    app.add_option("--json", json, "write the figures there instead of printing tables");
    app.add_option("--fabrics", fabrics,
                   "how many spoilt ones of eight kinds of trees (default 500; 0: none)");
    app.add_option("--others", others, "and of six shapes that are no plain tree (default 500)");
    app.add_option("--clean", clean,
                   "how many clean ones of each, with racks off and hosts on spines (default 100)");
    app.add_option("--first", first, "seed of the first (default 1)");
    app.add_option("--runs", runs, "of which each time is the median (default 7)")
        ->check(CLI::Range(1, 1000));
    app.add_flag("--no-speed", no_speed, "only the spoilt fabrics");
    app.add_flag("--quick", quick, "speed on the smallest size only");
    app.add_flag("--verbose", verbose, "a line for each miss and false alarm");
    app.add_option("--write", write, "SEED PREFIX: write the fabric of a seed and its truth, and end")
        ->expected(2);
    app.add_flag("--other", other, "--write one of the shapes that are no plain tree");
    app.add_option("--lines", lines, "FILES: read their lines, and end");
    app.add_option("--one", one, "DUMP SNAPSHOT: one run of the measurement, and end")->expected(2);
    CLI11_PARSE(app, argc, argv);
    if (!lines.empty()) return read_lines(lines);
    if (!one.empty()) return measure_one(one[0], one[1]);
    if (!write.empty()) return write_fabric(std::strtoull(write[0].c_str(), nullptr, 10), write[1], other);

    banyan::bench::figures figures;
    if (!no_speed && !measure_speed(figures, runs, quick)) return 1;
    const bool table = json.empty();
    if (!measure_quality(figures, {{mixed_fabric, fabrics}, {other_fabric, others}}, first, verbose, table) ||
        !measure_clean(figures, {{clean_fabric, clean}, {clean_other_fabric, clean}}, first, verbose))
        return 1;
    return figures.finish(json);
}
