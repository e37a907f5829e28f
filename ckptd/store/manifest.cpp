// SPDX-License-Identifier: BSD-3-Clause
//
// The small files of a step: MANIFEST.json, COMMIT, latest; listing and removing steps.
#include <algorithm>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/slots/layout.hpp"
#include "ckptd/store/safetensors.hpp"
#include "ckptd/store/store.hpp"
#include "common/crc32c.hpp"
#include "common/file.hpp"
#include "common/text.hpp"
#include "common/wire.hpp"

namespace banyan::ckpt {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t max_manifest_bytes = 512u << 20;
constexpr std::string_view step_prefix = "step-";

std::string to_json(const manifest& m) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (const auto& f : m.files)
        files.push_back({{"path", shard_name(f.rank)},
                         {"rank", f.rank},
                         {"size", f.bytes},
                         {"crc32c", f.crc32c},
                         {"crc32c_4mib", f.chunks}});
    const nlohmann::ordered_json out{{"format", "banyan-ckpt 1"},  {"step", m.step},   {"job", m.job},
                                     {"generation", m.generation}, {"world", m.world}, {"files", files}};
    return out.dump(1) + "\n";
}

result<shard_file> file_from(const nlohmann::json& entry) {
    if (!entry.is_object()) return fail(errc::invalid_input, "an entry of \"files\" is not an object");
    shard_file f;
    BANYAN_TRY(f.rank, wire::get_number(entry, "rank", UINT32_MAX));
    BANYAN_TRY(f.bytes, wire::get_number(entry, "size"));
    BANYAN_TRY(f.crc32c, wire::get_number(entry, "crc32c", UINT32_MAX));
    const auto chunks = entry.find("crc32c_4mib");
    if (chunks == entry.end() || !chunks->is_array() ||
        chunks->size() != (f.bytes + chunk_bytes - 1) / chunk_bytes)
        return fail(errc::invalid_input,
                    fmt::format("rank {}: \"crc32c_4mib\" does not fit its size", f.rank));
    for (const auto& c : *chunks) {
        if (!c.is_number_unsigned() || c.get<std::uint64_t>() > UINT32_MAX)
            return fail(errc::invalid_input, fmt::format("rank {}: a checksum is not a number", f.rank));
        f.chunks.push_back(c.get<std::uint32_t>());
    }
    return f;
}

result<manifest> parse_manifest(const std::string& text) {
    BANYAN_TRY(const auto head, wire::decode_meta(std::as_bytes(std::span(text))));
    manifest m;
    BANYAN_TRY(m.step, wire::get_number(head, "step", max_step));
    BANYAN_TRY(m.job, wire::get_number(head, "job"));
    BANYAN_TRY(m.generation, wire::get_number(head, "generation"));
    BANYAN_TRY(m.world, wire::get_number(head, "world", UINT32_MAX));
    const auto files = head.find("files");
    if (files == head.end() || !files->is_array() || files->size() != m.world)
        return fail(errc::invalid_input, "\"files\" is not a list with one entry per rank");
    for (const auto& entry : *files) {
        BANYAN_TRY(auto f, file_from(entry));
        if (f.rank != m.files.size())
            return fail(errc::invalid_input, fmt::format("rank {} is missing in \"files\"", m.files.size()));
        m.files.push_back(std::move(f));
    }
    return m;
}

// The step's own COMMIT goes first and durably: a removal that stops half-way leaves no step that looks
// whole.
void remove_step(const std::string& dir, std::uint64_t step) {
    const auto folder = step_folder(dir, step);
    if (::unlink((folder + "/COMMIT").c_str()) != 0) return;
    if (!sync_directory(folder)) return;
    std::error_code ignored;
    fs::remove_all(folder, ignored);
}

result<std::vector<std::uint64_t>> list_as_current(const std::string& dir) {
    std::vector<std::uint64_t> out;
    std::error_code ec;
    fs::directory_iterator at(dir, ec);
    if (ec == std::errc::no_such_file_or_directory) return out;
    if (ec) return fail_errno(fmt::format("cannot list {}", dir), ec.value());
    for (; at != fs::directory_iterator(); at.increment(ec)) {
        if (ec) return fail_errno(fmt::format("cannot list {}", dir), ec.value());
        const auto name = at->path().filename().string();
        if (!name.starts_with(step_prefix) || name.size() != step_prefix.size() + step_digits) continue;
        const auto step = parse_number(std::string_view(name).substr(step_prefix.size()), max_step);
        std::error_code missing;
        if (step && fs::is_regular_file(at->path() / "COMMIT", missing)) out.push_back(*step);
        if (ec) break;
    }
    std::sort(out.rbegin(), out.rend());
    return out;
}

}  // namespace

std::string step_folder(const std::string& dir, std::uint64_t step) {
    return fmt::format("{}/{}{:0{}}", dir, step_prefix, step, step_digits);
}

std::string shard_name(std::uint32_t rank) { return fmt::format("rank-{:06}.safetensors", rank); }

result<void> prepare_directory(const storage_user& user, const std::string& dir) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    std::error_code ec;
    fs::create_directories(dir, ec);
    if (ec) return fail_errno(fmt::format("cannot make the checkpoint directory {}", dir), ec.value());
    // access() asks for the real uid; only trying tells what this identity may do, on every file system.
    auto probe = dir + "/.banyan-probe.XXXXXX";
    unique_fd fd(::mkostemp(probe.data(), O_CLOEXEC));
    if (!fd)
        return fail_errno(
            fmt::format("the checkpoint directory {} is not writable for uid {}", dir, user.uid), errno);
    ::unlink(probe.c_str());
    return {};
}

result<void> open_step(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto folder = step_folder(dir, step);
    if (::mkdir(folder.c_str(), 0777) == 0) return sync_directory(dir);
    if (errno != EEXIST) return fail_errno(fmt::format("cannot make {}", folder), errno);
    if (::unlink((folder + "/COMMIT").c_str()) != 0) {
        if (errno == ENOENT) return {};
        return fail_errno(fmt::format("cannot remove {}/COMMIT", folder), errno);
    }
    return sync_directory(folder);
}

result<void> commit_step(const storage_user& user, const std::string& dir, const manifest& m,
                         std::size_t keep) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto folder = step_folder(dir, m.step);
    const auto text = to_json(m);
    BANYAN_CHECK(write_file_atomic(folder + "/MANIFEST.json", text));
    const auto crc = crc32c(std::as_bytes(std::span(text)));
    BANYAN_CHECK(write_file_atomic(folder + "/COMMIT", fmt::format("{:08x} {}\n", crc, m.step)));
    BANYAN_CHECK(
        write_file_atomic(dir + "/latest", fmt::format("{}{:0{}}\n", step_prefix, m.step, step_digits)));
    BANYAN_TRY(auto steps, list_as_current(dir));
    // The step just committed stays whatever its number: a job that began again counts from below.
    std::erase(steps, m.step);
    for (std::size_t i = keep > 0 ? keep - 1 : 0; i < steps.size(); ++i) remove_step(dir, steps[i]);
    return {};
}

result<std::vector<std::uint64_t>> list_steps(const storage_user& user, const std::string& dir) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    return list_as_current(dir);
}

result<manifest> load_step(const storage_user& user, const std::string& dir, std::uint64_t step) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto folder = step_folder(dir, step);
    BANYAN_TRY(const auto commit, read_file(folder + "/COMMIT", 256));
    BANYAN_TRY(const auto text, read_file(folder + "/MANIFEST.json", max_manifest_bytes));
    const auto crc = crc32c(std::as_bytes(std::span(text)));
    if (commit != fmt::format("{:08x} {}\n", crc, step))
        return fail(errc::invalid_input, fmt::format("{}/COMMIT does not fit its MANIFEST.json", folder),
                    "the step is damaged; use another one");
    auto m = parse_manifest(text);
    if (!m) return fail(errc::invalid_input, fmt::format("{}/MANIFEST.json: {}", folder, m.error().what));
    return m;
}

}  // namespace banyan::ckpt
