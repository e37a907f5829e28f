// SPDX-License-Identifier: BSD-3-Clause
//
// A step's regions by name into a process's memory, from whatever ranks saved them.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "ckptd/client/outcome.hpp"
#include "ckptd/client/regions.hpp"
#include "ckptd/protocol/protocol.hpp"
#include "ckptd/store/step_reader.hpp"

namespace banyan::ckpt {

/// As the C functions report what a step_reader says of a region, or of a rank's shard.
outcome unread(const error& e);
/// Regions without a part come from what `rank` has saved. BCK_E_LAYOUT names the first one that the step
/// does not have; those before it are filled.
outcome fill_all(step_reader& from, std::uint32_t rank, const region_table& into);
/// The same for a rank of `world`. Where another number of ranks saved the step every region has to say which
/// part of which tensor it is.
outcome fill_in_any_world(step_reader& from, std::uint32_t rank, std::uint32_t world,
                          const region_table& into);

/// The step that the ranks of a job begin from. The node's daemon reads it, on whatever node's memory it
/// lies; what lies in none comes from the job's directory.
class job_step final : public step_source {
  public:
    /// One question to the daemon; the reply's body fills `into`.
    using question =
        std::function<result<nlohmann::json>(message, const nlohmann::json&, std::span<std::byte> into)>;
    struct description {
        std::uint64_t job = 0;
        std::uint64_t step = 0;
        std::uint64_t generation = 0;  ///< in which it was saved; 0: by another job
        std::uint32_t world = 0;
        std::string dir;  ///< empty: the job has none
    };
    /// From the daemon's answer to a rank of `job`, of `world` ranks, that asked for its state.
    static result<description> described(const nlohmann::json& reply, std::uint64_t job, std::uint32_t world);

    job_step(description what, question ask) : what_(std::move(what)), ask_(std::move(ask)) {}
    std::uint64_t step() const override { return what_.step; }
    std::uint32_t world() const override { return what_.world; }
    saver saved_by() const override;
    result<const shard_file*> shard(std::uint32_t rank) override;
    result<void> read(const shard_file& of, std::size_t chunk, std::span<std::byte> into) override;
    std::string name_of(std::uint32_t rank) const override;

  private:
    struct known {
        shard_file file;
        bool is_anywhere = true, is_stored = false;
    };
    nlohmann::json question_about(std::uint32_t rank) const;
    result<known> look(std::uint32_t rank);
    result<step_source*> stored();

    description what_;
    question ask_;
    std::map<std::uint32_t, known> shards_;
    std::unique_ptr<step_source> stored_;
};

}  // namespace banyan::ckpt
