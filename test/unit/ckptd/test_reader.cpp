// SPDX-License-Identifier: BSD-3-Clause
//
// A checkpoint directory is read with no job and no daemon, in whatever layout.
#include <cstring>
#include <fstream>
#include <numeric>
#include <vector>

#include <banyan/ckpt.h>
#include <banyan/ckpt.hpp>
#include <catch2/catch.hpp>

#include "ckptd/store/block.hpp"
#include "ckptd/store/safetensors.hpp"
#include "steps.hpp"

namespace test_reader {

using namespace banyan::ckpt;
using namespace ckptd_test;

namespace {

using numbers = std::vector<std::uint64_t>;
const numbers shape{12, 10};

float at(std::uint64_t row, std::uint64_t column) { return static_cast<float>(100 * row + column); }

std::vector<float> values(const block& b) {
    std::vector<float> out;
    for (std::uint64_t row = 0; row < b.shape[0]; ++row)
        for (std::uint64_t column = 0; column < b.shape[1]; ++column)
            out.push_back(at(b.begin[0] + row, b.begin[1] + column));
    return out;
}

/// One rank has its part of "w", "count", which all have alike, and "own", which is its own.
void write_rank(const banyan::ckpt::claim& owner, const std::string& flush, manifest& m, std::uint32_t rank,
                const block& part) {
    std::vector<region> regions{{"w", "F32", part.shape, volume(part) * 4, 0, tensor_part{shape, part.begin}},
                                {"count", "I64", {}, 8, 0, tensor_part{}},
                                {"own", "U8", {3}, 3, 0}};
    auto head = make_image_header(regions, owner.job, rank, m.world);
    REQUIRE(head);
    put_step(head->text.data() + head->step_at, m.step);
    std::vector<std::byte> image(head->image_bytes);
    std::memcpy(image.data(), head->text.data(), head->text.size());
    const auto w = values(part);
    const std::int64_t count = 4711;
    const std::vector<unsigned char> own(3, static_cast<unsigned char>(rank));
    std::memcpy(image.data() + regions[0].offset, w.data(), w.size() * 4);
    std::memcpy(image.data() + regions[1].offset, &count, 8);
    std::memcpy(image.data() + regions[2].offset, own.data(), 3);
    const auto f = write_shard(self(), owner.dir, flush, m.step, rank, image, chunk_checksums(image),
                               [](std::uint64_t) {});
    REQUIRE(f);
    m.files.push_back(*f);
}

void write(const std::string& dir, std::uint64_t step, const std::vector<block>& parts) {
    const auto owner = own(dir);
    const auto flush = open_flush(self(), owner);
    REQUIRE(flush);
    manifest m{owner.job, step, owner.generation, static_cast<std::uint32_t>(parts.size()), {}};
    for (std::uint32_t rank = 0; rank < parts.size(); ++rank) write_rank(owner, *flush, m, rank, parts[rank]);
    REQUIRE(commit_step(self(), owner, *flush, m));
}

/// As so many rows and columns of ranks have it, as even as it may be.
std::vector<block> grid(std::uint64_t rows, std::uint64_t columns) {
    const auto cut = [](std::uint64_t i, std::uint64_t n, std::uint64_t of) { return i * of / n; };
    std::vector<block> out;
    for (std::uint64_t r = 0; r < rows; ++r)
        for (std::uint64_t c = 0; c < columns; ++c) {
            const numbers first{cut(r, rows, shape[0]), cut(c, columns, shape[1])};
            out.push_back(
                {first, {cut(r + 1, rows, shape[0]) - first[0], cut(c + 1, columns, shape[1]) - first[1]}});
        }
    return out;
}

struct reader {
    bck_reader* handle = nullptr;
    explicit reader(const std::string& dir) {
        REQUIRE(bck_reader_open(dir.c_str(), nullptr, &handle) == BCK_OK);
    }
    ~reader() { bck_reader_close(handle); }
    reader(const reader&) = delete;

    int fill(const block& part, std::vector<float>& into, const numbers& of = shape,
             const char* dtype = "F32") const {
        into.assign(volume(part), -1);
        const bck_tensor wanted{"w",
                                into.data(),
                                into.size() * 4,
                                dtype,
                                static_cast<int>(part.shape.size()),
                                part.shape.data(),
                                of.data(),
                                part.begin.data()};
        return bck_reader_fill(handle, 0, &wanted, 1);
    }
};

}  // namespace

TEST_CASE("a step in storage is read in any layout", "[client]") {
    const temporary t;
    const auto [rows, columns] =
        GENERATE(table<std::uint64_t, std::uint64_t>({{1, 1}, {4, 1}, {1, 3}, {3, 2}, {5, 4}}));
    CAPTURE(rows, columns);
    write(t.dir(), 7, grid(rows, columns));
    const reader from(t.dir());
    CHECK(bck_reader_step(from.handle) == 7);
    CHECK(bck_reader_world(from.handle) == rows * columns);
    for (const auto& [r, c] : {std::pair{1, 1}, {2, 1}, {7, 1}, {1, 7}, {4, 3}, {12, 10}})
        for (const auto& part : grid(static_cast<std::uint64_t>(r), static_cast<std::uint64_t>(c))) {
            std::vector<float> got;
            CHECK(from.fill(part, got) == BCK_OK);
            CHECK(got == values(part));
        }
}

TEST_CASE("what all ranks have alike is read once, what is a rank's own of that rank", "[client]") {
    const temporary t;
    write(t.dir(), 7, {{{0, 0}, shape}, {{0, 0}, shape}, {{6, 0}, {6, 10}}});
    const reader from(t.dir());
    std::int64_t count = 0;
    unsigned char mine[3]{};
    const std::uint64_t none = 0, three = 3;
    const bck_tensor wanted[]{{"count", &count, 8, "I64", 0, nullptr, &none, &none},
                              {"own", mine, 3, "U8", 1, &three, nullptr, nullptr}};
    CHECK(bck_reader_fill(from.handle, 2, wanted, 2) == BCK_OK);
    CHECK(count == 4711);
    CHECK(mine[2] == 2);
    std::vector<float> got;
    CHECK(from.fill({{0, 0}, shape}, got) == BCK_OK);
    CHECK(got == values({{0, 0}, shape}));
    CHECK(bck_reader_fill(from.handle, 3, wanted + 1, 1) == BCK_E_REFUSED);  // there is no such rank
    bck_contents* has = nullptr;
    REQUIRE(bck_reader_stat(from.handle, 1, &has) == BCK_OK);
    bck_region count_of{}, own_of{};
    CHECK(bck_contents_find(has, "count", &count_of) == BCK_OK);
    CHECK((count_of.global_shape && count_of.offset));
    CHECK(bck_contents_find(has, "own", &own_of) == BCK_OK);
    CHECK(!own_of.global_shape);
    bck_contents_free(has);
    CHECK(bck_reader_stat(from.handle, 3, &has) == BCK_E_REFUSED);
    CHECK(has == nullptr);
}

TEST_CASE("the same in C++", "[client]") {
    const temporary t;
    CHECK(bck::reader::open(t.dir()).error().code == BCK_E_NOTFOUND);
    write(t.dir(), 7, grid(3, 1));
    auto from = bck::reader::open(t.dir(), 7);
    REQUIRE(from);
    CHECK(from->step() == 7);
    CHECK(from->world() == 3);
    const auto has = from->stat(2);
    REQUIRE(has);
    CHECK(has->find("w")->is_piece);
    CHECK(from->stat(3).error().code == BCK_E_REFUSED);
    std::vector<float> got(50);
    const numbers part{5, 10}, begin{3, 0};
    bck::tensors wanted;
    REQUIRE(wanted.add_piece("w", std::span(got), part, shape, begin));
    CHECK(from->fill(0, wanted));
    CHECK(got == values({begin, part}));
}

TEST_CASE("a tensor that the step has otherwise, or not whole, is told by its name", "[client]") {
    const temporary t;
    write(t.dir(), 7, {{{0, 0}, {6, 10}}, {{8, 0}, {4, 10}}});
    const reader from(t.dir());
    std::vector<float> got;
    CHECK(from.fill({{0, 0}, {6, 4}}, got) == BCK_OK);
    CHECK(from.fill({{5, 0}, {2, 10}}, got) == BCK_E_LAYOUT);
    CHECK(std::string(bck_error()) == "tensor \"w\" has no part at [6,0] in step 7: no rank saved it");
    CHECK(from.fill({{0, 0}, {6, 4}}, got, {12, 11}) == BCK_E_LAYOUT);
    CHECK(std::string(bck_error()) == "tensor \"w\" is F32 [12,10] in step 7, not F32 [12,11]");
    CHECK(from.fill({{0, 0}, {6, 4}}, got, shape, "I32") == BCK_E_LAYOUT);
    CHECK(from.fill({{0}, {4}}, got, {12}) == BCK_E_LAYOUT);
    CHECK(from.fill({{0, 0}, {0, 4}}, got) == BCK_OK);  // nothing is anywhere
    const std::uint64_t one = 1;
    const bck_tensor unknown{"x", got.data(), 0, "F32", 1, &one, &one, &one};
    CHECK(bck_reader_fill(from.handle, 0, &unknown, 1) == BCK_E_INVALID);
    CHECK(bck_reader_fill(from.handle, 0, nullptr, 0) == BCK_OK);
    CHECK(bck_reader_fill(nullptr, 0, nullptr, 0) == BCK_E_INVALID);
}

TEST_CASE("the newest step is read, and what is damaged is told", "[client]") {
    const temporary t;
    bck_reader* r = nullptr;
    CHECK(bck_reader_open(t.dir().c_str(), nullptr, &r) == BCK_E_NOTFOUND);
    CHECK(bck_reader_open((t.dir() + "/none").c_str(), nullptr, &r) != BCK_OK);
    for (const std::uint64_t step : {1, 2}) write(t.dir(), step, grid(2, 1));
    const std::uint64_t first = 1, third = 3;
    REQUIRE(bck_reader_open(t.dir().c_str(), &first, &r) == BCK_OK);
    CHECK(bck_reader_step(r) == 1);
    bck_reader_close(r);
    CHECK(bck_reader_open(t.dir().c_str(), &third, &r) != BCK_OK);
    CHECK(r == nullptr);
    const reader from(t.dir());
    CHECK(bck_reader_step(from.handle) == 2);
    const auto file = step_folder(t.dir(), 2) + "/" + shard_name(1);
    {
        std::fstream f(file, std::ios::in | std::ios::out | std::ios::binary);
        f.seekp(-1, std::ios::end);
        f.put('\x7f');
    }
    std::vector<float> got;
    // The other rank has all of it: this one's header is not looked at.
    CHECK(from.fill({{0, 0}, {6, 10}}, got) == BCK_OK);
    CHECK(from.fill({{6, 0}, {6, 10}}, got) == BCK_E_REFUSED);
    CHECK(std::string(bck_error())
              .starts_with("region \"w\": " + file + " is damaged: checksum of its chunk 0 differs"));
}

TEST_CASE("no older step is read in place of a damaged one", "[client]") {
    const temporary t;
    for (const std::uint64_t step : {1, 2}) write(t.dir(), step, grid(2, 1));
    std::ofstream(step_folder(t.dir(), 2) + "/MANIFEST.json", std::ios::app) << " ";
    bck_reader* r = nullptr;
    CHECK(bck_reader_open(t.dir().c_str(), nullptr, &r) == BCK_E_REFUSED);
    CHECK(std::string(bck_error()).find("step-000000000002") != std::string::npos);
    const std::uint64_t first = 1;
    REQUIRE(bck_reader_open(t.dir().c_str(), &first, &r) == BCK_OK);
    bck_reader_close(r);
}

TEST_CASE("regions of many chunks are read in pieces", "[client]") {
    const temporary t;
    constexpr std::uint64_t side = 2304;  // 20 MiB
    const numbers large{side, side};
    const auto owner = own(t.dir());
    const auto flush = open_flush(self(), owner);
    REQUIRE(flush);
    manifest m{owner.job, 3, owner.generation, 1, {}};
    std::vector<region> regions{{"w", "F32", large, side * side * 4, 0, tensor_part{large, {0, 0}}}};
    auto head = make_image_header(regions, owner.job, 0, 1);
    REQUIRE(head);
    put_step(head->text.data() + head->step_at, 3);
    std::vector<std::byte> image(head->image_bytes);
    std::memcpy(image.data(), head->text.data(), head->text.size());
    std::vector<float> w(side * side);
    std::iota(w.begin(), w.end(), 0.0F);
    std::memcpy(image.data() + regions[0].offset, w.data(), w.size() * 4);
    const auto f =
        write_shard(self(), owner.dir, *flush, 3, 0, image, chunk_checksums(image), [](std::uint64_t) {});
    REQUIRE(f);
    m.files.push_back(*f);
    REQUIRE(commit_step(self(), owner, *flush, m));
    const reader from(t.dir());
    std::vector<float> got;
    CHECK(from.fill({{0, 0}, large}, got, large) == BCK_OK);
    CHECK(got == w);
    const block corner{{1000, 2000}, {1300, 300}};
    CHECK(from.fill(corner, got, large) == BCK_OK);
    bool same = true;
    for (std::uint64_t row = 0; row < corner.shape[0]; ++row)
        same = same && std::equal(got.begin() + static_cast<std::ptrdiff_t>(row * 300),
                                  got.begin() + static_cast<std::ptrdiff_t>((row + 1) * 300),
                                  w.begin() + static_cast<std::ptrdiff_t>((1000 + row) * side + 2000));
    CHECK(same);
}

}  // namespace test_reader
