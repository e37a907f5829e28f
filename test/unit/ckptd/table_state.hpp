// SPDX-License-Identifier: BSD-3-Clause
//
// A state that any number of ranks can share: rows of one table, each rank some of them, and a scalar that
// all have. What a row holds follows from its number and the step alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <banyan/ckpt.h>

#include "state.hpp"

namespace ckptd_test {

class table_state {
  public:
    static constexpr std::uint64_t width = 70'001;

    table_state(std::uint64_t first, std::uint64_t count, std::uint64_t all)
        : first_(first), all_(all), rows_(count * width) {}

    int save(std::uint64_t step) {
        step_ = step;
        rows_ = content(step);
        const auto given = tensors();
        return bck_checkpoint_of(step, given.data(), given.size());
    }
    /// "code step source same"
    restored_state restart() {
        clear();
        restored_state out;
        const auto given = tensors();
        out.code = bck_restart_into(&out.step, &out.source, given.data(), given.size());
        out.same = is_of(out.step);
        return out;
    }
    /// The same by a reader, which the rank then goes on from.
    restored_state read() {
        clear();
        restored_state out;
        bck_reader* reader = nullptr;
        out.code = bck_reader_open_job(nullptr, &reader);
        const auto given = tensors();
        if (out.code == BCK_OK) out.code = bck_reader_fill(reader, 0, given.data(), given.size());
        bck_reader_close(reader);
        if (out.code == BCK_OK) out.code = bck_restart_into(&out.step, &out.source, nullptr, 0);
        out.same = is_of(out.step);
        return out;
    }

  private:
    std::vector<bck_tensor> tensors() {
        shape_ = {rows_.size() / width, width};
        global_ = {all_, width};
        offset_ = {first_, 0};
        static constexpr std::uint64_t none = 0;
        return {{"table", rows_.data(), rows_.size(), "U8", 2, shape_.data(), global_.data(), offset_.data()},
                {"step", &step_, sizeof step_, "U64", 0, &none, &none, &none}};
    }
    std::vector<unsigned char> content(std::uint64_t step) const {
        std::vector<unsigned char> out;
        for (auto row = first_; row < first_ + rows_.size() / width; ++row) {
            const auto one = state_of(static_cast<std::uint32_t>(row), step, width);
            out.insert(out.end(), one.begin(), one.end());
        }
        return out;
    }
    void clear() {
        rows_.assign(rows_.size(), 0xee);
        step_ = 0;
    }
    bool is_of(std::uint64_t step) const { return step_ == step && rows_ == content(step); }

    std::uint64_t first_, all_, step_ = 0;
    std::vector<unsigned char> rows_;
    std::vector<std::uint64_t> shape_, global_, offset_;
};

}  // namespace ckptd_test
