// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/store/header_entries.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ckptd/store/safetensors.hpp"

namespace banyan::ckpt {
namespace {

constexpr int max_depth = 16;
constexpr std::size_t max_fields = 64;  // of one entry

class entry_reader : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit entry_reader(const std::function<result<void>(header_entry&)>& each) : each_(each) {}

    result<void> take(bool parsed) {
        if (!problem_) return std::move(problem_);
        if (!parsed || !done_) return fail(errc::invalid_input, "the header is not a JSON object");
        return {};
    }

    bool null() override { return other(); }
    bool boolean(bool) override { return other(); }
    bool number_integer(number_integer_t) override { return other(); }
    bool number_float(number_float_t, const string_t&) override { return other(); }
    bool binary(binary_t&) override { return stop("the header is not JSON"); }

    bool string(string_t& text) override {
        if (depth_ == 2 && !in_list_) {
            if (entry_.texts.size() >= max_fields) return stop(about("has too many fields"));
            entry_.texts.emplace_back(std::move(key_), std::move(text));
            return true;
        }
        return other();
    }
    bool number_unsigned(number_unsigned_t n) override {
        if (!in_list_ || depth_ != 3) return other();
        auto& numbers = entry_.lists.back().second;
        if (numbers.size() >= max_dimensions) return stop(about("has a list that is too long"));
        numbers.push_back(n);
        return true;
    }
    bool key(string_t& text) override {
        if (depth_ == 1)
            entry_.name = std::move(text);
        else if (depth_ == 2)
            key_ = std::move(text);
        return true;
    }
    bool start_object(std::size_t) override {
        if (in_list_) return stop(about("has a list of something else than numbers"));
        if (++depth_ > max_depth) return stop("the header is nested too deep");
        if (depth_ == 2) {
            entry_.texts.clear();
            entry_.lists.clear();
        }
        return true;
    }
    bool end_object() override {
        if (--depth_ == 0) done_ = true;
        if (depth_ != 1) return true;
        problem_ = each_(entry_);
        return problem_.has_value();
    }
    bool start_array(std::size_t) override {
        if (++depth_ > max_depth) return stop("the header is nested too deep");
        if (depth_ <= 2) return stop("the header is not an object of objects");
        if (depth_ != 3) return in_list_ ? stop(about("has a list of something else than numbers")) : true;
        if (entry_.lists.size() >= max_fields) return stop(about("has too many fields"));
        entry_.lists.emplace_back(std::move(key_), std::vector<std::uint64_t>());
        in_list_ = true;
        return true;
    }
    bool end_array() override {
        if (--depth_ == 2) in_list_ = false;
        return true;
    }
    bool parse_error(std::size_t at, const std::string&, const nlohmann::detail::exception&) override {
        return stop(fmt::format("the header is not JSON at byte {}", at));
    }

  private:
    bool stop(std::string why) {
        if (problem_) problem_ = fail(errc::invalid_input, std::move(why));
        return false;
    }
    std::string about(const char* what) const { return fmt::format("\"{}\" {}", entry_.name, what); }
    bool other() {
        if (depth_ < 2) return stop("the header is not an object of objects");
        return in_list_ ? stop(about("has a list of something else than whole numbers")) : true;
    }

    const std::function<result<void>(header_entry&)>& each_;
    header_entry entry_;
    std::string key_;
    result<void> problem_;
    int depth_ = 0;
    bool in_list_ = false, done_ = false;
};

template <class Pairs>
auto* find_in(Pairs& pairs, std::string_view key) {
    for (auto& p : pairs)
        if (p.first == key) return &p.second;
    return static_cast<decltype(&pairs.front().second)>(nullptr);
}

}  // namespace

const std::string* header_entry::text(std::string_view key) const { return find_in(texts, key); }
const std::vector<std::uint64_t>* header_entry::list(std::string_view key) const {
    return find_in(lists, key);
}

result<void> read_entries(std::string_view json, const std::function<result<void>(header_entry&)>& each) {
    entry_reader reader(each);
    const bool parsed = nlohmann::json::sax_parse(json, &reader);
    return reader.take(parsed);
}

}  // namespace banyan::ckpt
