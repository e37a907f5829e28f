// SPDX-License-Identifier: BSD-3-Clause
//
// MANIFEST.json read as a stream: its author may be anybody, so nothing is held but one file's entry.
#include <istream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ckptd/buffers/chunks.hpp"
#include "ckptd/store/safetensors.hpp"
#include "ckptd/store/steps.hpp"
#include "ckptd/store/store.hpp"
#include "ckptd/store/summed_file.hpp"
#include "ckptd/store/user_dir.hpp"

namespace banyan::ckpt {
namespace {

constexpr std::uint64_t max_manifest_bytes = 512u << 20;
constexpr std::uint64_t manifest_base = 64u << 10;
constexpr std::uint64_t manifest_per_rank = 1u << 20;  // checksums of a shard of 256 GiB
constexpr std::size_t max_chunks = 1u << 20;
constexpr std::size_t max_token = 4096;

// The document is {head fields, "files": [{file fields, "crc32c_4mib": [numbers]}]}; whatever else stands in
// it is passed over without being kept. Order matters where a limit hangs on it: "world" before "files",
// "size" before "crc32c_4mib", as banyan writes them.
class manifest_reader : public nlohmann::json_sax<nlohmann::json> {
  public:
    manifest_reader(std::uint32_t world, const std::function<void(const shard_file&)>& each)
        : wanted_world_(world), each_(each) {}

    result<step_summary> take(bool parsed) {
        if (!problem_.empty()) return fail(errc::invalid_input, problem_);
        if (!parsed || !done_) return fail(errc::invalid_input, "it is not the JSON that it should be");
        if (count_ != summary_.world || (head_ & all_head) != all_head)
            return fail(errc::invalid_input, "\"files\" is not a list with one entry per rank");
        return summary_;
    }

    bool null() override { return other(); }
    bool boolean(bool) override { return other(); }
    bool number_integer(number_integer_t) override { return other(); }
    bool number_float(number_float_t, const string_t&) override { return other(); }
    bool string(string_t&) override { return other(); }
    bool binary(binary_t&) override { return stop("it is not JSON"); }

    bool number_unsigned(number_unsigned_t n) override {
        if (at_ == place::head) return head_number(n);
        if (at_ == place::file) return file_number(n);
        if (at_ != place::chunks) return other();
        if (n > UINT32_MAX) return stop(fmt::format("rank {}: a checksum is not a number", count_));
        if (file_.chunks.size() >= want_chunks_) return misfit();
        file_.chunks.push_back(static_cast<std::uint32_t>(n));
        return true;
    }

    bool key(string_t& text) override {
        key_ = depth_ <= 3 ? text : string_t();
        return true;
    }

    bool start_object(std::size_t) override {
        if (++depth_ > max_depth) return stop("it is nested too deep");
        if (depth_ == 1) {
            at_ = place::head;
        } else if (at_ == place::files && depth_ == 3) {
            at_ = place::file;
            file_ = {};
            fields_ = 0;
        } else if (at_ == place::files || at_ == place::chunks) {
            return stop("an entry is not what it should be");
        }
        key_.clear();
        return true;
    }

    bool end_object() override {
        --depth_;
        key_.clear();
        if (depth_ == 0) done_ = true;
        if (at_ == place::file && depth_ == 2) {
            at_ = place::files;
            return end_file();
        }
        return true;
    }

    bool start_array(std::size_t) override {
        if (++depth_ > max_depth) return stop("it is nested too deep");
        if (depth_ == 1) return stop("it is not a JSON object");
        if (at_ == place::head && depth_ == 2 && key_ == "files") {
            if (!(head_ & has_world)) return stop("\"world\" does not stand before \"files\"");
            at_ = place::files;
        } else if (at_ == place::file && depth_ == 4 && key_ == "crc32c_4mib") {
            if (!(fields_ & has_size) || (fields_ & has_chunks))
                return stop("\"size\" does not stand before \"crc32c_4mib\"");
            fields_ |= has_chunks;
            want_chunks_ = chunk_count(file_.bytes);
            if (want_chunks_ > max_chunks) return stop(fmt::format("rank {} is too large", count_));
            at_ = place::chunks;
        } else if (at_ == place::files || at_ == place::chunks) {
            return stop("an entry is not what it should be");
        }
        key_.clear();
        return true;
    }

    bool end_array() override {
        --depth_;
        if (at_ == place::chunks && depth_ == 3) at_ = place::file;
        if (at_ == place::files && depth_ == 1) at_ = place::head;
        return true;
    }

    bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
        return stop(fmt::format("it is not JSON at byte {}", at));
    }

  private:
    enum class place { outside, head, files, file, chunks };
    enum : unsigned { has_step = 1, has_job = 2, has_generation = 4, has_world = 8, all_head = 15 };
    enum : unsigned { has_rank = 1, has_size = 2, has_crc = 4, has_chunks = 8, all_file = 15 };
    static constexpr int max_depth = 16;

    bool stop(std::string why) {
        if (problem_.empty()) problem_ = std::move(why);
        return false;
    }
    bool misfit() { return stop(fmt::format("rank {}: \"crc32c_4mib\" does not fit its size", count_)); }
    // A value that nobody asked for, unless it stands where a number must.
    bool other() {
        if (at_ == place::files || at_ == place::chunks) return stop("an entry is not what it should be");
        return true;
    }

    bool head_number(std::uint64_t n) {
        if (depth_ != 1) return true;
        if (key_ == "step") return head(has_step, summary_.step, n, max_step);
        if (key_ == "job") return head(has_job, summary_.job, n, UINT64_MAX);
        if (key_ == "generation") return head(has_generation, summary_.generation, n, UINT64_MAX);
        if (key_ != "world") return true;
        std::uint64_t world = 0;
        if (!head(has_world, world, n, UINT32_MAX)) return false;
        summary_.world = static_cast<std::uint32_t>(world);
        if (wanted_world_ != 0 && world != wanted_world_)
            return stop(fmt::format("it is of {} ranks, not {}", world, wanted_world_));
        return true;
    }
    bool head(unsigned which, std::uint64_t& into, std::uint64_t n, std::uint64_t max) {
        if (n > max) return stop(fmt::format("\"{}\" is too large", key_));
        head_ |= which;
        into = n;
        return true;
    }

    bool file_number(std::uint64_t n) {
        if (depth_ != 3) return true;
        if (key_ == "rank") {
            if (n != count_) return stop(fmt::format("rank {} is missing in \"files\"", count_));
            file_.rank = static_cast<std::uint32_t>(n);
            fields_ |= has_rank;
        } else if (key_ == "size" && !(fields_ & has_chunks)) {
            file_.bytes = n;
            fields_ |= has_size;
        } else if (key_ == "crc32c" && n <= UINT32_MAX) {
            file_.crc32c = static_cast<std::uint32_t>(n);
            fields_ |= has_crc;
        } else if (key_ == "pieces_in") {
            if (n >= count_) return stop(fmt::format("rank {}: \"pieces_in\" is no lower rank", count_));
            file_.pieces_in = static_cast<std::uint32_t>(n);
        }
        return true;
    }
    bool end_file() {
        if (count_ >= summary_.world || fields_ != all_file)
            return stop(fmt::format("entry {} of \"files\" is not whole", count_));
        if (file_.chunks.size() != want_chunks_) return misfit();
        if (__builtin_add_overflow(summary_.bytes, file_.bytes, &summary_.bytes))
            return stop("the sizes overflow");
        if (each_) each_(file_);
        ++count_;
        return true;
    }

    std::uint32_t wanted_world_;
    const std::function<void(const shard_file&)>& each_;
    step_summary summary_;
    shard_file file_;
    std::uint64_t want_chunks_ = 0;
    std::uint32_t count_ = 0;
    unsigned head_ = 0, fields_ = 0;
    int depth_ = 0;
    place at_ = place::outside;
    bool done_ = false;
    std::string key_, problem_;
};

}  // namespace

result<step_summary> scan_step(const storage_user& user, const std::string& dir, std::uint64_t step,
                               std::uint32_t world, const std::function<void(const shard_file&)>& each) {
    BANYAN_TRY(const auto identity, as_user::take(user));
    const auto shown = step_folder(dir, step);
    BANYAN_TRY(const auto top, open_for_reading(dir));
    BANYAN_TRY(const auto folder, open_step_folder(top.get(), dir, step));
    BANYAN_TRY(const auto commit, read_small(folder.get(), "COMMIT", shown + "/COMMIT", 256));
    const auto name = shown + "/MANIFEST.json";
    std::uint64_t bytes = 0;
    BANYAN_TRY(const auto file, open_regular(folder.get(), "MANIFEST.json", name, &bytes));
    const auto most =
        world == 0 ? max_manifest_bytes
                   : std::min<std::uint64_t>(max_manifest_bytes, manifest_base + world * manifest_per_rank);
    if (bytes > most)
        return fail(errc::invalid_input,
                    fmt::format("{} has {} bytes, at most {} make sense", name, bytes, most));
    summed_file source(file.get(), most + 1, max_token);
    std::istream stream(&source);
    manifest_reader reader(world, each);
    const bool parsed = nlohmann::json::sax_parse(stream, &reader);
    auto out = reader.take(parsed);
    if (const int err = source.failed()) {
        auto why = fail_errno(fmt::format("cannot read {}", name), err);
        if (is_damage(err)) why.error().code = errc::invalid_input;
        return why;
    }
    if (source.has_long_token())
        return fail(
            errc::invalid_input,
            fmt::format("{}: a text, a number or a gap in it is longer than {} bytes", name, max_token));
    if (source.too_long()) return fail(errc::invalid_input, fmt::format("{} grows while it is read", name));
    if (!out) return fail(errc::invalid_input, fmt::format("{}: {}", name, out.error().what));
    if (commit != fmt::format("{:08x} {}\n", source.crc(), step) || out->step != step)
        return fail(errc::invalid_input, fmt::format("{}/COMMIT does not fit its MANIFEST.json", shown),
                    "the step is damaged; use another one");
    return out;
}

bool was_seen(const error& why) {
    return why.code == errc::invalid_input || why.code == errc::not_found || why.code == errc::conflict;
}

}  // namespace banyan::ckpt
