// SPDX-License-Identifier: BSD-3-Clause
//
// The C functions that say what a checkpoint holds, and that read a step of a directory without a job.
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <banyan/ckpt.h>
#include <fmt/format.h>

#include "ckptd/client/api.hpp"
#include "ckptd/client/client.hpp"
#include "ckptd/client/reading.hpp"
#include "common/guard.hpp"

struct bck_reader {
    banyan::ckpt::step_reader step;
};

bck_contents::bck_contents(banyan::ckpt::image_contents of) : image(std::move(of)) {
    for (std::size_t i = 0; i < image.regions.size(); ++i) by_name.emplace(image.regions[i].name, i);
}

namespace banyan::ckpt {
namespace {

bck_region describe(const region& r) {
    return {r.name.c_str(),
            r.dtype.c_str(),
            static_cast<int>(r.shape.size()),
            r.shape.data(),
            r.bytes,
            r.part ? numbers_of(r.part->global_shape) : nullptr,
            r.part ? numbers_of(r.part->begin) : nullptr};
}

outcome fill_given(step_reader& from, std::uint32_t rank, std::span<const bck_tensor> tensors) {
    region_table table;
    for (const auto& one : tensors)
        if (auto added = table.add(one); added.code != 0) return added;
    if (table.size() != tensors.size())
        return {BCK_E_INVALID, "a name is there twice in one list of regions"};
    return fill_all(from, rank, table);
}

}  // namespace
}  // namespace banyan::ckpt

using banyan::ckpt::outcome;
using banyan::ckpt::report;

extern "C" {

uint64_t bck_contents_step(const bck_contents* contents) {
    return banyan::guarded(
        "bck_contents_step", [] { return std::uint64_t{}; },
        [&] { return contents ? contents->image.step : 0; });
}

size_t bck_contents_size(const bck_contents* contents) {
    return banyan::guarded(
        "bck_contents_size", [] { return std::size_t{}; },
        [&] { return contents ? contents->image.regions.size() : 0; });
}

int bck_contents_at(const bck_contents* contents, size_t index, bck_region* region) {
    return report([&]() -> outcome {
        if (!contents || !region || index >= contents->image.regions.size())
            return {BCK_E_INVALID, "contents or region is NULL, or there are fewer regions"};
        *region = banyan::ckpt::describe(contents->image.regions[index]);
        return {};
    });
}

int bck_contents_find(const bck_contents* contents, const char* name, bck_region* region) {
    return report([&]() -> outcome {
        if (!contents || !region || !name) return {BCK_E_INVALID, "contents, name or region is NULL"};
        const auto it = contents->by_name.find(name);
        if (it == contents->by_name.end())
            return {BCK_E_LAYOUT, "the step has no region \"" + std::string(name) + "\""};
        *region = banyan::ckpt::describe(contents->image.regions[it->second]);
        return {};
    });
}

void bck_contents_free(bck_contents* contents) {
    banyan::guarded(
        "bck_contents_free", [] {}, [&] { delete contents; });
}

int bck_reader_open(const char* dir, const uint64_t* step, bck_reader** reader) {
    return report([&]() -> outcome {
        if (!dir || !reader) return {BCK_E_INVALID, "dir or reader is NULL"};
        *reader = nullptr;
        auto opened = banyan::ckpt::open_stored_step(dir, step ? std::optional(*step) : std::nullopt);
        if (!opened && opened.error().code == banyan::errc::not_found)
            return {BCK_E_NOTFOUND, opened.error().text()};
        if (!opened) return banyan::ckpt::unread(opened.error());
        *reader = new bck_reader{banyan::ckpt::step_reader(std::move(*opened))};
        return {};
    });
}

int bck_reader_open_job(bck_state* state, bck_reader** reader) {
    return report([&]() -> outcome {
        if (!reader) return {BCK_E_INVALID, "reader is NULL"};
        *reader = nullptr;
        std::unique_ptr<banyan::ckpt::step_source> found;
        if (auto r = banyan::ckpt::client_of(state).open_step(&found); r.code != 0) return r;
        *reader = new bck_reader{banyan::ckpt::step_reader(std::move(found))};
        return {};
    });
}

uint64_t bck_reader_step(const bck_reader* reader) {
    return banyan::guarded(
        "bck_reader_step", [] { return std::uint64_t{}; }, [&] { return reader ? reader->step.step() : 0; });
}

uint32_t bck_reader_world(const bck_reader* reader) {
    return banyan::guarded(
        "bck_reader_world", [] { return std::uint32_t{}; },
        [&] { return reader ? reader->step.world() : 0; });
}

int bck_reader_stat(bck_reader* reader, uint32_t rank, bck_contents** contents) {
    return report([&]() -> outcome {
        if (!reader || !contents) return {BCK_E_INVALID, "reader or contents is NULL"};
        *contents = nullptr;
        auto found = reader->step.contents(rank);
        if (!found) return banyan::ckpt::unread(found.error());
        *contents = new bck_contents(**found);
        return {};
    });
}

int bck_reader_fill(bck_reader* reader, uint32_t rank, const bck_tensor* tensors, size_t count) {
    return report([&]() -> outcome {
        if (!reader || (!tensors && count != 0)) return {BCK_E_INVALID, "reader or tensors is NULL"};
        return banyan::ckpt::fill_given(reader->step, rank, std::span(tensors, count));
    });
}

void bck_reader_close(bck_reader* reader) {
    banyan::guarded(
        "bck_reader_close", [] {}, [&] { delete reader; });
}
}
