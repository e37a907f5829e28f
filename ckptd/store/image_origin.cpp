// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/image_origin.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ckptd/buffers/rank_memory.hpp"
#include "ckptd/store/safetensors.hpp"
#include "common/text.hpp"

namespace banyan::ckpt {
namespace {

// Stops where both numbers are known, or at the end of what there is.
class origin_reader : public nlohmann::json_sax<nlohmann::json> {
  public:
    std::optional<std::string> rank, world;

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool string(string_t& text) override {
        if (depth_ != 2 || entry_ != "__metadata__") return true;
        if (key_ == "rank") rank = text;
        if (key_ == "world") world = text;
        return !rank || !world;
    }
    bool key(string_t& text) override {
        if (depth_ == 1) entry_ = text;
        if (depth_ == 2) key_ = text;
        return true;
    }
    bool start_object(std::size_t) override { return ++depth_ > 0; }
    bool end_object() override { return --depth_ > 0; }
    bool start_array(std::size_t) override { return ++depth_ > 0; }
    bool end_array() override { return --depth_ > 0; }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

  private:
    std::string entry_, key_;
    int depth_ = 0;
};

}  // namespace

result<image_origin> read_origin(std::span<const std::byte> image) {
    BANYAN_TRY(const auto bytes, header_bytes_of(image, image.size()));
    // A copy: the memory may change meanwhile.
    const std::string text(reinterpret_cast<const char*>(image.data()) + 8,
                           std::min<std::uint64_t>(bytes, least_page_bytes - 8));
    origin_reader in;
    (void)nlohmann::json::sax_parse(text, &in);
    if (!in.rank || !in.world)
        return fail(errc::invalid_input,
                    "the shard was not written by banyan: it does not say first whose it is");
    image_origin out;
    BANYAN_TRY(const auto rank, parse_number(std::string_view(*in.rank).substr(0, 21), UINT32_MAX));
    BANYAN_TRY(const auto world, parse_number(std::string_view(*in.world).substr(0, 21), UINT32_MAX));
    out.rank = static_cast<std::uint32_t>(rank);
    out.world = static_cast<std::uint32_t>(world);
    return out;
}

result<std::optional<std::string>> why_not_in_parts(std::span<const std::byte> image) {
    constexpr std::size_t most_read = 4u << 20, most_shown = 200;
    BANYAN_TRY(const auto bytes, header_bytes_of(image, image.size()));
    if (bytes > most_read)
        return fmt::format(
            "what it says of its regions has {}, and at most {} are read: join small regions, or give them "
            "shorter names",
            format_bytes(bytes), format_bytes(most_read));
    const std::string text(reinterpret_cast<const char*>(image.data()) + 8, bytes);
    BANYAN_TRY(const auto has, read_header(text, image.size()));
    const auto unsaid = [](const region& r) { return !r.part && r.bytes != 0; };
    const auto without = std::ranges::find_if(has.regions, unsaid);
    if (without == has.regions.end()) return std::nullopt;
    return fmt::format("its region \"{}\" does not say which part of which tensor it is (bck_protect_piece)",
                       without->name.substr(0, most_shown));
}

}  // namespace banyan::ckpt
