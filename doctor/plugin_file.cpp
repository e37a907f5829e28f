// SPDX-License-Identifier: BSD-3-Clause
//
// Slurm's plugins on disk: the version number in the object, and the lines of plugstack.conf. A plugin is
// read as a file, since loading it would need slurmctld around it.
#include <algorithm>
#include <cstring>

#include <elf.h>
#include <fmt/format.h>
#include <glob.h>

#include "common/file.hpp"
#include "common/text.hpp"
#include "doctor/slurm.hpp"

namespace banyan::doctor {
namespace {

constexpr std::size_t most_object = 256u << 20, most_plugstack = 1u << 20;
constexpr int most_includes = 8;

/// The T at `at` of the file, or nothing where the file ends before.
template <class T>
std::optional<T> at(std::string_view object, std::uint64_t offset) {
    if (offset > object.size() || object.size() - offset < sizeof(T)) return {};
    T out;
    std::memcpy(&out, object.data() + offset, sizeof(T));
    return out;
}

std::string_view text_at(std::string_view object, std::uint64_t offset) {
    if (offset >= object.size()) return {};
    const auto rest = object.substr(offset);
    return rest.substr(0, rest.find('\0'));
}

/// The value of the 32-bit variable `name` that the object exports.
std::optional<std::uint32_t> exported_number(std::string_view object, std::string_view name) {
    const auto head = at<Elf64_Ehdr>(object, 0);
    if (!head || std::memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64)
        return {};
    const auto section = [&](std::uint64_t i) {
        return i < head->e_shnum ? at<Elf64_Shdr>(object, head->e_shoff + i * sizeof(Elf64_Shdr))
                                 : std::nullopt;
    };
    for (std::uint64_t i = 0; i < head->e_shnum; ++i) {
        const auto symbols = section(i);
        if (!symbols || symbols->sh_type != SHT_DYNSYM) continue;
        const auto names = section(symbols->sh_link);
        if (!names) return {};
        for (std::uint64_t s = 0; s + sizeof(Elf64_Sym) <= symbols->sh_size; s += sizeof(Elf64_Sym)) {
            const auto symbol = at<Elf64_Sym>(object, symbols->sh_offset + s);
            if (!symbol) return {};
            if (symbol->st_shndx == SHN_UNDEF || text_at(object, names->sh_offset + symbol->st_name) != name)
                continue;
            const auto home = section(symbol->st_shndx);
            if (!home || symbol->st_value < home->sh_addr) return {};
            return at<std::uint32_t>(object, home->sh_offset + (symbol->st_value - home->sh_addr));
        }
    }
    return {};
}

std::filesystem::path whole_pattern(const std::filesystem::path& from, const std::string& pattern) {
    return std::filesystem::path(pattern).is_absolute() ? std::filesystem::path(pattern)
                                                        : from.parent_path() / pattern;
}

std::vector<std::string> included(const std::filesystem::path& from, const std::string& pattern) {
    const auto whole = whole_pattern(from, pattern);
    std::vector<std::string> out;
    glob_t found{};
    if (::glob(whole.c_str(), 0, nullptr, &found) == 0)
        out.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
    ::globfree(&found);
    return out;
}

std::vector<std::string> words_of(std::string_view line) {
    std::vector<std::string> out;
    for (auto word : split(trim(line.substr(0, line.find('#'))), ' '))
        for (auto part : split(word, '\t'))
            if (!part.empty()) out.emplace_back(part);
    return out;
}

result<std::optional<plugstack_line>> search(const std::filesystem::path& file, int depth) {
    if (depth > most_includes)
        return fail(errc::invalid_input, fmt::format("{} includes itself", file.string()));
    BANYAN_TRY(const auto text, read_file(file, most_plugstack));
    for (const auto line : split(text, '\n')) {
        const auto words = words_of(line);
        if (words.size() < 2) continue;
        if (words[0] == "include") {
            for (const auto& other : included(file, words[1])) {
                BANYAN_TRY(auto found, search(other, depth + 1));
                if (found) return found;
            }
            continue;
        }
        if (std::filesystem::path(words[1]).filename() != "spank_banyan.so") continue;
        return plugstack_line{file, words[0] == "required", words[1],
                              plugstack_arguments::from(std::span(words).subspan(2))};
    }
    return std::nullopt;
}

void collect(const std::filesystem::path& file, int depth, std::vector<std::filesystem::path>& out) {
    if (depth > most_includes) return;
    out.push_back(file);
    const auto text = read_file(file, most_plugstack);
    if (!text) return;
    for (const auto line : split(*text, '\n')) {
        const auto words = words_of(line);
        if (words.size() < 2 || words[0] != "include") continue;
        const auto whole = whole_pattern(file, words[1]);
        std::error_code ignored;
        if (whole.filename().string().find_first_of("*?[") != std::string::npos &&
            std::filesystem::is_directory(whole.parent_path(), ignored))
            out.push_back(whole.parent_path());
        for (const auto& other : included(file, words[1])) collect(other, depth + 1, out);
    }
}

}  // namespace

result<std::uint32_t> plugin_version(const std::filesystem::path& file) {
    BANYAN_TRY(const auto object, read_file(file, most_object));
    const auto version = exported_number(object, "plugin_version");
    if (!version) return fail(errc::invalid_input, fmt::format("{} is no plugin of Slurm", file.string()));
    return *version & 0xffffff;
}

result<std::optional<plugstack_line>> find_in_plugstack(const std::filesystem::path& file) {
    return search(file, 0);
}

std::vector<std::filesystem::path> parts_of_plugstack(const std::filesystem::path& file) {
    std::vector<std::filesystem::path> out;
    collect(file, 0, out);
    std::ranges::sort(out);
    out.erase(std::ranges::unique(out).begin(), out.end());
    return out;
}

}  // namespace banyan::doctor
