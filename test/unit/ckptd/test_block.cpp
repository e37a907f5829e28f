// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <random>
#include <vector>

#include <catch2/catch.hpp>

#include "ckptd/store/block.hpp"

namespace test_block {

using namespace banyan::ckpt;

namespace {

std::vector<run> runs_of(const block& from, const block& to, std::size_t element = 1) {
    std::vector<run> out;
    if (const auto shared = common(from, to))
        for_each_run(from, to, *shared, element, [&](const run& r) {
            out.push_back(r);
            return true;
        });
    return out;
}

/// A byte for each element, which says where in the tensor it is.
std::vector<std::uint64_t> filled(const block& b, const std::vector<std::uint64_t>& tensor) {
    std::vector<std::uint64_t> out;
    auto at = b.begin;
    for (std::uint64_t i = 0; i < volume(b); ++i) {
        std::uint64_t place = 0;
        for (std::size_t d = 0; d < at.size(); ++d) place = place * tensor[d] + at[d];
        out.push_back(place);
        for (std::size_t d = at.size(); d-- > 0;) {
            if (++at[d] < b.begin[d] + b.shape[d]) break;
            at[d] = b.begin[d];
        }
    }
    return out;
}

}  // namespace

TEST_CASE("what two parts of a tensor share lies in runs that are as long as they can be", "[ckptd]") {
    struct row {
        block from, to;
        std::vector<run> runs;
    };
    for (const auto& [from, to, runs] : {
             row{{{}, {}}, {{}, {}}, {{0, 0, 1}}},
             {{{0}, {8}}, {{0}, {8}}, {{0, 0, 8}}},
             {{{0}, {4}}, {{4}, {4}}, {}},
             {{{2}, {4}}, {{0}, {4}}, {{0, 2, 2}}},
             {{{0, 0}, {4, 8}}, {{2, 0}, {2, 8}}, {{16, 0, 16}}},            // rows
             {{{0, 0}, {2, 8}}, {{0, 4}, {2, 4}}, {{4, 0, 4}, {12, 4, 4}}},  // columns
             {{{0, 0, 0}, {2, 2, 2}}, {{1, 0, 0}, {1, 2, 2}}, {{4, 0, 4}}},
             {{{0, 0}, {0, 8}}, {{0, 0}, {4, 8}}, {}},  // nothing
         }) {
        CHECK(runs_of(from, to) == runs);
    }
    CHECK(runs_of({{0, 0}, {4, 4}}, {{1, 1}, {2, 2}}, 4) == std::vector<run>{{20, 0, 8}, {36, 8, 8}});
}

TEST_CASE("a tensor that was saved in one layout is read in another, element by element", "[ckptd]") {
    std::mt19937_64 random(815);
    const auto below = [&](std::uint64_t n) { return random() % n; };
    for (int round = 0; round < 2000; ++round) {
        const std::size_t dims = below(4);
        std::vector<std::uint64_t> tensor;
        for (std::size_t d = 0; d < dims; ++d) tensor.push_back(1 + below(6));
        const auto some = [&] {
            block out;
            for (const auto extent : tensor) {
                out.begin.push_back(below(extent));
                out.shape.push_back(1 + below(extent - out.begin.back()));
            }
            return out;
        };
        const auto to = some();
        std::vector<std::uint64_t> got(volume(to), UINT64_MAX);
        std::vector<block> missing{to};
        for (int piece = 0; piece < 40 && !missing.empty(); ++piece) {
            const auto from = piece < 39 ? some() : block{std::vector<std::uint64_t>(dims), tensor};
            const auto data = filled(from, tensor);
            std::vector<block> left;
            for (const auto& m : missing) {
                const auto shared = common(from, m);
                if (!shared) {
                    left.push_back(m);
                    continue;
                }
                for_each_run(from, to, *shared, 1, [&](const run& r) {
                    for (std::uint64_t i = 0; i < r.bytes; ++i) {
                        REQUIRE(got[r.to + i] == UINT64_MAX);  // nothing twice
                        got[r.to + i] = data[r.from + i];
                    }
                    return true;
                });
                for (auto& rest : without(m, *shared)) left.push_back(std::move(rest));
            }
            missing = std::move(left);
        }
        REQUIRE(missing.empty());
        REQUIRE(got == filled(to, tensor));
    }
}

}  // namespace test_block
