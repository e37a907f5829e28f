// SPDX-License-Identifier: BSD-3-Clause
#include "train/options.hpp"

#include <vector>

#include <banyan/topo/traffic.hpp>
#include <fmt/format.h>

#include "common/text.hpp"

namespace banyan::train {

// Slurm builds `env` from the plugin's and the option's name; see _opt_env_name in its plugstack.c.
const std::array<option_name, option_count> option_names{{
    {"train-parallel", "SHAPE", "[banyan] parallel dimensions, innermost first, such as tp=8,pp=4,dp=2",
     "_SLURM_SPANK_OPTION_banyan_train_parallel", "BANYAN_TRAIN_PARALLEL"},
    {"train-spares", "NODES", "[banyan] nodes of the allocation kept as spares",
     "_SLURM_SPANK_OPTION_banyan_train_spares", "BANYAN_TRAIN_SPARES"},
    {"train-ckpt", "KEYS", "[banyan] checkpoints, such as dir=/path,every=1,flush=50",
     "_SLURM_SPANK_OPTION_banyan_train_ckpt", "BANYAN_TRAIN_CKPT"},
    {"train-model", "KEYS", "[banyan] model, such as hidden=8192,layers=80,seq=8192,micro=16",
     "_SLURM_SPANK_OPTION_banyan_train_model", "BANYAN_TRAIN_MODEL"},
    {"train-wait", "MINUTES", "[banyan] start that much later if the job is placed better then",
     "_SLURM_SPANK_OPTION_banyan_train_wait", "BANYAN_TRAIN_WAIT"},
    {"train-min-dp", "GROUPS", "[banyan] go on with so few data parallel groups when nodes are lost",
     "_SLURM_SPANK_OPTION_banyan_train_min_dp", "BANYAN_TRAIN_MIN_DP"},
}};

result<std::uint32_t> parse_spares(std::string_view text) {
    auto number = parse_number(text, max_spares);
    if (!number)
        return fail(errc::invalid_input, fmt::format("--train-spares: {}", number.error().what),
                    "write the number of spare nodes, such as --train-spares=1");
    return static_cast<std::uint32_t>(*number);
}

result<std::uint32_t> parse_wait(std::string_view text) {
    auto number = parse_number(text, max_wait_minutes);
    if (!number)
        return fail(errc::invalid_input, fmt::format("--train-wait: {}", number.error().what),
                    "write minutes, such as --train-wait=60");
    return static_cast<std::uint32_t>(*number);
}

result<std::uint32_t> parse_min_dp(std::string_view text) {
    const auto number = parse_number(text, topo::max_ranks);
    if (number && *number != 0) return static_cast<std::uint32_t>(*number);
    return fail(errc::invalid_input,
                "--train-min-dp: " + (number ? "0 groups cannot train" : number.error().what),
                "write the fewest data parallel groups that may train on, such as --train-min-dp=6");
}

result<checkpoint_options> parse_checkpoint(std::string_view text) {
    const auto wrong = [](const error& e) {
        return fail(errc::invalid_input, "--train-ckpt: " + e.what,
                    e.hint.empty() ? "write for example dir=/lustre/run1,every=1,flush=50" : e.hint);
    };
    // In slurmstepd the text is the user's, and has passed no other check.
    if (text.size() > max_option_text)
        return wrong({errc::invalid_input, fmt::format("longer than {} bytes", max_option_text), {}});
    auto pairs = parse_key_values(text);
    if (!pairs) return wrong(pairs.error());
    checkpoint_options out;
    constexpr std::uint64_t max_steps = 1'000'000'000;
    for (const auto& [key, value] : *pairs) {
        if (key == "dir") {
            if (value.empty() || value[0] != '/')
                return wrong(
                    {errc::invalid_input, fmt::format("dir \"{}\" is not an absolute path", value), {}});
            if (!is_printable(value))
                return wrong({errc::invalid_input,
                              fmt::format("dir \"{}\" has control characters", printable(value)),
                              {}});
            out.directory = value;
        } else if (key == "every" || key == "flush" || key == "milestone") {
            const auto steps = parse_number(value, max_steps);
            if (!steps) return wrong(steps.error());
            if (key == "every" && *steps == 0)
                return wrong(
                    {errc::invalid_input, "every=0 would never save", "omit --train-ckpt to switch it off"});
            auto& into = key == "every" ? out.every : key == "flush" ? out.flush : out.milestone;
            into = static_cast<std::uint32_t>(*steps);
        } else if (key == "size") {
            const auto bytes = parse_bytes(value);
            if (!bytes) return wrong(bytes.error());
            if (*bytes > max_state_bytes)
                return wrong(
                    {errc::invalid_input,
                     fmt::format("size={} is more than 16T, and no node has that much memory", value),
                     "write the bytes of one rank's state, such as size=2G"});
            out.bytes = *bytes;
        } else {
            const std::vector<std::string> known{"dir", "every", "flush", "milestone", "size"};
            const auto close = nearest(key, known);
            return wrong({errc::invalid_input, fmt::format("unknown key \"{}\"", key),
                          close.empty() ? "keys are dir, every, flush, milestone, size"
                                        : fmt::format("did you mean {}?", close)});
        }
    }
    if (out.flush != 0 && out.directory.empty())
        return wrong({errc::invalid_input, "flush needs a directory", "add dir=/path"});
    if (out.milestone != 0 && out.flush == 0)
        return wrong({errc::invalid_input, "milestone is of steps in storage, and needs a flush",
                      "add flush=50, for example"});
    if (out.flush % out.every != 0)
        return wrong({errc::invalid_input,
                      fmt::format("flush={} is not a multiple of every={}", out.flush, out.every),
                      {}});
    return out;
}

result<void> check(which option, std::string_view text) {
    env_reader reader;
    reader.take(fmt::format("{}={}", option_names[option].env, text));
    const auto parsed = reader.finish();
    if (!parsed) return std::unexpected(parsed.error());
    return {};
}

void env_reader::take(std::string_view entry) {
    for (std::size_t i = 0; i < option_count; ++i) {
        const std::string_view name = option_names[i].env;
        if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=')
            text_[i] = entry.substr(name.size() + 1);
    }
}

result<options> env_reader::finish() const {
    options out;
    for (std::size_t i = 0; i < option_count; ++i)
        if (text_[i] && text_[i]->size() > max_option_text)
            return fail(errc::invalid_input,
                        fmt::format("--{} is longer than {} bytes", option_names[i].option, max_option_text),
                        fmt::format("write {}, see --help", option_names[i].argument));
    if (text_[parallel]) {
        auto shape = topo::parse_shape(*text_[parallel]);
        if (!shape)
            return fail(errc::invalid_input, "--train-parallel: " + shape.error().what, shape.error().hint);
        out.parallel = std::move(*shape);
    }
    if (text_[spares]) {
        BANYAN_TRY(out.spares, parse_spares(*text_[spares]));
    }
    if (text_[checkpoint]) {
        BANYAN_TRY(out.checkpoint, parse_checkpoint(*text_[checkpoint]));
    }
    if (text_[model]) {
        BANYAN_TRY(out.model, topo::parse_model(*text_[model]));
    }
    if (text_[wait]) {
        BANYAN_TRY(out.wait_minutes, parse_wait(*text_[wait]));
    }
    if (text_[min_dp]) {
        BANYAN_TRY(out.min_dp, parse_min_dp(*text_[min_dp]));
    }
    return out;
}

}  // namespace banyan::train
