// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "sweep/gpus.hpp"

/// Stands for NVIDIA's library: answers what it was given.
class fake_gpus final : public banyan::sweep::gpu_library {
  public:
    using health_answer = banyan::result<banyan::sweep::gpu_health>;

    explicit fake_gpus(std::vector<health_answer> each) : each_(std::move(each)) {}
    banyan::result<std::uint32_t> count() override { return static_cast<std::uint32_t>(each_.size()); }
    health_answer health(std::uint32_t index) override { return each_.at(index); }

  private:
    std::vector<health_answer> each_;
};
