// SPDX-License-Identifier: BSD-3-Clause
//
// A state that any number of ranks can share: rows of one table, each rank some of them, and a scalar that
// all have. What a row holds follows from its number and the step alone. Besides, where it is wanted, bytes
// that are the rank's own, and no part of a tensor.
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

    void add_own(std::uint32_t rank) {
        rank_ = rank;
        own_.resize(10'007);
    }
    int save(std::uint64_t step) {
        step_ = step;
        rows_ = content(step);
        own_ = own_of(step);
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
        own_shape_ = own_.size();
        std::vector<bck_tensor> out{
            {"table", rows_.data(), rows_.size(), "U8", 2, shape_.data(), global_.data(), offset_.data()},
            {"step", &step_, sizeof step_, "U64", 0, &none, &none, &none}};
        if (!own_.empty())
            out.push_back({"own", own_.data(), own_.size(), "U8", 1, &own_shape_, nullptr, nullptr});
        return out;
    }
    std::vector<unsigned char> own_of(std::uint64_t step) const {
        return own_.empty() ? own_ : state_of(1000 + rank_, step, own_.size());
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
        own_.assign(own_.size(), 0xee);
        step_ = 0;
    }
    bool is_of(std::uint64_t step) const {
        return step_ == step && rows_ == content(step) && own_ == own_of(step);
    }

    std::uint64_t first_, all_, step_ = 0;
    std::vector<unsigned char> rows_, own_;
    std::uint32_t rank_ = 0;
    std::uint64_t own_shape_ = 0;
    std::vector<std::uint64_t> shape_, global_, offset_;
};

}  // namespace ckptd_test
