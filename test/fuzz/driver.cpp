// SPDX-License-Identifier: BSD-3-Clause
//
// Runs a libFuzzer entry without libFuzzer: every file of the corpus as it is, then so many mutations of
// them. The same seed gives the same inputs: DRIVER [--seed N] [--runs N] CORPUS...
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using text = std::vector<std::uint8_t>;

std::vector<text> read_corpus(const std::string& path) {
    std::vector<text> out;
    constexpr std::size_t most =
        65536;  // the start of a dump has all of its grammar, and small inputs mutate faster
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
        if (!entry.is_regular_file()) continue;
        std::ifstream file(entry.path(), std::ios::binary);
        text bytes(std::istreambuf_iterator<char>(file), {});
        bytes.resize(std::min(bytes.size(), most));
        out.push_back(std::move(bytes));
    }
    return out;
}

void mutate(text& t, const std::vector<text>& corpus, std::mt19937_64& random) {
    const auto at = [&] { return t.empty() ? 0 : random() % t.size(); };
    switch (random() % 6) {
        case 0:
            if (!t.empty()) t[at()] ^= static_cast<std::uint8_t>(1u << random() % 8);
            break;
        case 1:
            if (!t.empty()) t[at()] = static_cast<std::uint8_t>(random());
            break;
        case 2:
            t.insert(t.begin() + static_cast<std::ptrdiff_t>(at()), random() % 16,
                     static_cast<std::uint8_t>(random()));
            break;
        case 3: {
            const auto from = at();
            t.erase(t.begin() + static_cast<std::ptrdiff_t>(from),
                    t.begin() + static_cast<std::ptrdiff_t>(std::min(t.size(), from + random() % 64)));
            break;
        }
        case 4:
            t.resize(at());
            break;
        default: {
            const auto& other = corpus[random() % corpus.size()];
            if (other.empty()) break;
            const auto from = random() % other.size();
            const auto count = std::min<std::size_t>(other.size() - from, random() % 256);
            t.insert(t.begin() + static_cast<std::ptrdiff_t>(at()),
                     other.begin() + static_cast<std::ptrdiff_t>(from),
                     other.begin() + static_cast<std::ptrdiff_t>(from + count));
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t seed = 1, runs = 1000;
    std::vector<text> corpus{{}};
    for (int i = 1; i < argc; ++i) {
        if (!std::strcmp(argv[i], "--seed") && i + 1 < argc)
            seed = std::strtoull(argv[++i], nullptr, 10);
        else if (!std::strcmp(argv[i], "--runs") && i + 1 < argc)
            runs = std::strtoull(argv[++i], nullptr, 10);
        else
            for (auto& t : read_corpus(argv[i])) corpus.push_back(std::move(t));
    }
    std::printf("seed %llu, %zu files\n", static_cast<unsigned long long>(seed), corpus.size());
    std::fflush(stdout);
    for (const auto& t : corpus) LLVMFuzzerTestOneInput(t.data(), t.size());
    std::mt19937_64 random(seed);
    for (std::uint64_t run = 0; run < runs; ++run) {
        auto t = corpus[random() % corpus.size()];
        for (auto n = 1 + random() % 8; n > 0; --n) mutate(t, corpus, random);
        LLVMFuzzerTestOneInput(t.data(), t.size());
    }
    std::printf("%llu inputs, no finding\n", static_cast<unsigned long long>(runs));
}
