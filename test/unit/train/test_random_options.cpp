// SPDX-License-Identifier: BSD-3-Clause
//
// 10,000 job specifications by the dice through the option parser: valid, nearly valid, garbage, huge. Each
// gives either options whose text gives the same options again, or an error that says which option and what
// to do.
#include <chrono>
#include <ctime>
#include <random>

#include <banyan/topo/traffic.hpp>
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "train/options.hpp"

namespace test_random_options {

using namespace banyan;
using namespace banyan::train;

namespace {

constexpr unsigned seed = 20261121;
constexpr int specifications = 10'000;

class dice {
  public:
    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(engine_); }
    bool chance(double p) { return std::bernoulli_distribution(p)(engine_); }
    template <class T, std::size_t N>
    const T& one_of(const T (&all)[N]) {
        return all[below(N)];
    }

  private:
    std::mt19937 engine_{seed};
};

std::string number(dice& d) {
    switch (d.below(8)) {
        case 0: {
            static const std::string odd[] = {"",   "0",   "-1",   "+1",  "007", " 1",
                                              "1 ", "1e3", "0x10", "1.5", "NaN", "∞"};
            return d.one_of(odd);
        }
        case 1: {
            static const std::string huge[] = {"65536",
                                               "16777216",
                                               "16777217",
                                               "4294967295",
                                               "4294967296",
                                               "18446744073709551615",
                                               "18446744073709551616"};
            return d.one_of(huge);
        }
        case 2:
            return std::string(1 + d.below(400), '9');
        default:
            return std::to_string(1 + d.below(d.chance(0.5) ? 8 : 2000));
    }
}

std::string shape(dice& d) {
    static const std::string names[] = {"tp", "pp", "dp", "cp", "ep", "tp", "pp", "dp"};
    static const std::string wrong[] = {"", "TP", "tpp", "xp", "tensor", "t p", "=", "\n"};
    std::string out;
    for (std::size_t i = 0, n = d.below(6); i < n; ++i)
        out += (i ? "," : "") + (d.chance(0.03) ? d.one_of(wrong) : d.one_of(names)) +
               (d.chance(0.97) ? "=" : "") + number(d);
    return out;
}

std::string checkpoint_keys(dice& d) {
    static const std::string directories[] = {"/lustre/run1",  "/",    "relative", "", "/a b",
                                              "/ünïcode/目录", "/a=b", "/a\nb"};
    static const std::string sizes[] = {
        "64M", "1.5G", "0",  "1",    "9T",  "8388608T",           "1.0.0",
        ".",   ".5K",  "7X", "1KiB", "1KB", "123456789123456789", "99999999999999999999999"};
    static const std::string wrong[] = {"evry", "", "flush ", "DIR", "siz"};
    std::string out;
    for (std::size_t i = 0, n = d.below(6); i < n; ++i) {
        if (i) out += ",";
        switch (d.below(6)) {
            case 0:
                out += "dir=" + d.one_of(directories);
                break;
            case 1:
                out += "every=" + number(d);
                break;
            case 2:
                out += "flush=" + number(d);
                break;
            case 3:
                out += "milestone=" + number(d);
                break;
            case 4:
                out += "size=" + d.one_of(sizes);
                break;
            default:
                out += d.chance(0.3) ? d.one_of(wrong) + "=1" : "dir=/x";
                break;
        }
    }
    return out;
}

std::string model_keys(dice& d) {
    static const std::string names[] = {"hidden", "layers", "seq", "micro", "hiden", ""};
    std::string out;
    for (std::size_t i = 0, n = 1 + d.below(4); i < n; ++i)
        out += (i ? "," : "") + d.one_of(names) + (d.chance(0.97) ? "=" : "") + number(d);
    return out;
}

std::string bytes(dice& d, std::size_t length) {
    std::string out(length, '\0');
    const bool printable = d.chance(0.3);
    for (auto& c : out) c = static_cast<char>(printable ? 32 + d.below(95) : d.below(256));
    return out;
}

// A few changes of a text that was well formed: what a typing error, or somebody who tries, makes of it.
void spoil(dice& d, std::string& text) {
    static const std::string inserts[] = {
        std::string(1, '\0'), "\n", ",", "=", "==", ",,", " ", "\xff", "%s%n", "\x1b[31m"};
    for (std::size_t i = 0, n = 1 + d.below(3); i < n; ++i) {
        const auto at = d.below(text.size() + 1);
        switch (d.below(4)) {
            case 0:
                text.insert(at, d.one_of(inserts));
                break;
            case 1:
                text.erase(at, 1 + d.below(3));
                break;
            case 2:
                text.insert(at, text.substr(d.below(text.size() + 1)));
                break;
            default:
                if (at < text.size()) text[at] = static_cast<char>(d.below(256));
        }
    }
}

std::string option(dice& d, which index) {
    if (d.chance(0.005)) {
        // Longer than anything that an option may hold: one letter, digits, or well formed to the end.
        static const std::string units[] = {"x", "9", "tp=2,", "dir=/a,", ",", "=", std::string(1, '\0')};
        const auto& unit = d.one_of(units);
        std::string out;
        while (out.size() < (1u << 20)) out += unit;
        return out;
    }
    if (d.chance(0.15)) return bytes(d, d.below(d.chance(0.1) ? 6000 : 60));
    auto text = index == parallel     ? shape(d)
                : index == model      ? model_keys(d)
                : index == checkpoint ? checkpoint_keys(d)
                                      : number(d);
    if (d.chance(0.3)) spoil(d, text);
    return text;
}

std::string text_of(const checkpoint_options& c) {
    std::string out =
        fmt::format("every={},flush={},milestone={},size={}", c.every, c.flush, c.milestone, c.bytes);
    if (!c.directory.empty()) out += ",dir=" + c.directory;
    return out;
}

void check_same(const options& a, const options& b) {
    REQUIRE(a.parallel.has_value() == b.parallel.has_value());
    if (a.parallel) CHECK(a.parallel->text() == b.parallel->text());
    CHECK(a.spares == b.spares);
    CHECK(a.wait_minutes == b.wait_minutes);
    CHECK(a.min_dp == b.min_dp);
    REQUIRE(a.model.has_value() == b.model.has_value());
    if (a.model) CHECK(topo::text_of(*a.model) == topo::text_of(*b.model));
    REQUIRE(a.checkpoint.has_value() == b.checkpoint.has_value());
    if (a.checkpoint) {
        CHECK(a.checkpoint->directory == b.checkpoint->directory);
        CHECK(a.checkpoint->every == b.checkpoint->every);
        CHECK(a.checkpoint->flush == b.checkpoint->flush);
        CHECK(a.checkpoint->bytes == b.checkpoint->bytes);
    }
}

result<options> read(const std::array<std::optional<std::string>, option_count>& texts) {
    env_reader reader;
    reader.take("PATH=/bin");
    for (std::size_t i = 0; i < option_count; ++i)
        if (texts[i]) reader.take(fmt::format("{}={}", option_names[i].env, *texts[i]));
    return reader.finish();
}

/// Of this thread: a busy machine takes none of it.
std::chrono::nanoseconds processor_time() {
    timespec t{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}

}  // namespace

TEST_CASE("random job specifications give options or an error with a hint", "[spank]") {
    dice d;
    int good = 0, refused = 0;
    std::chrono::nanoseconds longest{};
    for (int i = 0; i < specifications; ++i) {
        std::array<std::optional<std::string>, option_count> texts;
        for (std::size_t k = 0; k < option_count; ++k)
            if (d.chance(0.4)) texts[k] = option(d, static_cast<which>(k));

        const auto start = processor_time();
        const auto parsed = read(texts);
        longest = std::max(longest, processor_time() - start);
        INFO("seed " << seed << ", specification " << i);
        INFO(texts[parallel].value_or("-").substr(0, 200)
             << " | " << texts[spares].value_or("-").substr(0, 200) << " | "
             << texts[checkpoint].value_or("-").substr(0, 200));
        if (!parsed) {
            ++refused;
            INFO(parsed.error().text().substr(0, 400));
            CHECK(parsed.error().what.starts_with("--train-"));
            CHECK_FALSE(parsed.error().hint.empty());
            // What is refused together is refused alone: that is how srun and sbatch look at each.
            bool alone = false;
            for (std::size_t k = 0; k < option_count; ++k)
                alone = alone || (texts[k] && !check(static_cast<which>(k), *texts[k]));
            CHECK(alone);
            continue;
        }
        ++good;
        std::array<std::optional<std::string>, option_count> again;
        if (parsed->parallel) {
            again[parallel] = parsed->parallel->text();
            CHECK(parsed->parallel->ranks() > 0);
        }
        if (texts[spares]) again[spares] = std::to_string(parsed->spares);
        if (texts[wait]) again[wait] = std::to_string(parsed->wait_minutes);
        if (parsed->min_dp) again[min_dp] = std::to_string(*parsed->min_dp);
        if (parsed->model) again[model] = topo::text_of(*parsed->model);
        if (parsed->checkpoint) again[checkpoint] = text_of(*parsed->checkpoint);
        const auto twice = read(again);
        REQUIRE(twice);
        check_same(*parsed, *twice);
    }
    // The dice must reach both: each option alone is valid often enough.
    CHECK(good > specifications / 10);
    CHECK(refused > specifications / 10);
    // None is slow, whatever its size.
    CHECK(longest < std::chrono::seconds(1));
    WARN(good << " good, " << refused << " refused, the longest took "
              << std::chrono::duration_cast<std::chrono::microseconds>(longest).count() << " us");
}

}  // namespace test_random_options
