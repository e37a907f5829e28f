// SPDX-License-Identifier: BSD-3-Clause
#include "topo/model/hca_names.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <boost/unordered/unordered_flat_map.hpp>
#include <boost/unordered/unordered_flat_set.hpp>

#include "common/text.hpp"
#include "topo/model/build.hpp"
#include "topo/model/device_name.hpp"

namespace banyan::topo {
namespace {

/// How a site writes descriptions: the sign between host and device (a blank separates words), and which
/// stands first.
struct description_form {
    char sign = ' ';
    bool device_first = false;
    auto operator<=>(const description_form&) const = default;
};

struct parts {
    std::string_view host, device;
    bool more = false;  ///< words follow
};

std::optional<parts> split_words(std::string_view text, bool device_first) {
    const auto blank = text.find(' ');
    if (blank == text.npos) return std::nullopt;
    const auto first = text.substr(0, blank), rest = trim(text.substr(blank + 1));
    const auto second = rest.substr(0, rest.find(' '));
    return parts{device_first ? second : first, device_first ? first : second, second.size() < rest.size()};
}

/// One word: only a device that has a usual name shows where the host's ends.
std::optional<parts> split_word(std::string_view text, const description_form& f) {
    if (text.find(' ') != text.npos) return std::nullopt;
    for (auto at = text.find(f.sign); at != text.npos; at = text.find(f.sign, at + 1)) {
        const auto head = text.substr(0, at), tail = text.substr(at + 1);
        const parts out{f.device_first ? tail : head, f.device_first ? head : tail};
        if (!out.host.empty() && is_usual_device(out.device)) return out;
    }
    return std::nullopt;
}

std::optional<parts> split_by(std::string_view text, const description_form& f) {
    return f.sign == ' ' ? split_words(text, f.device_first) : split_word(text, f);
}

bool is_aggregation(std::string_view text) { return text.find("Aggregation Node") != text.npos; }

/// What a site calls its devices is not known beforehand. Two words are host and device where devices of that
/// kind ("rdma#") are seen again and each pair is not: a factory writes the same words on every HCA.
class device_kinds {
  public:
    void add(const parts& p) {
        if (!may_be(p)) return;
        auto& seen = kinds_[build::name_pattern(p.device)];
        ++seen.count;
        seen.pairs.emplace(p.host, p.device);
    }
    bool has(const parts& p) const {
        if (!may_be(p)) return false;
        const auto at = kinds_.find(build::name_pattern(p.device));
        return at != kinds_.end() && at->second.pairs.size() >= 2 &&
               at->second.count <= 2 * at->second.pairs.size();
    }

  private:
    static bool may_be(const parts& p) {
        return !p.more && p.device.find_first_of("0123456789") != p.device.npos;
    }
    struct kind {
        std::size_t count = 0;
        boost::unordered_flat_set<std::pair<std::string_view, std::string_view>> pairs;
    };
    std::map<std::string, kind> kinds_;
};

/// Blank, and what else stands in the descriptions that is neither letter nor digit.
std::set<char> signs_in(const std::vector<std::string_view>& descriptions) {
    std::set<char> out{' '};
    for (const auto text : descriptions)
        for (const char c : text)
            if (std::ispunct(static_cast<unsigned char>(c))) out.insert(c);
    return out;
}

/// A fabric's forms, most used first in what they say.
class description_reader {
  public:
    explicit description_reader(const std::vector<std::string_view>& descriptions) {
        // How many can be read so, and of how many characters their devices are.
        std::map<description_form, std::pair<std::size_t, std::size_t>> votes;
        boost::unordered_flat_map<std::string_view, boost::unordered_flat_set<std::string_view>> followers;
        const auto signs = signs_in(descriptions);
        for (const auto text : descriptions) {
            if (is_aggregation(text)) continue;
            for (const char sign : signs)
                for (const bool device_first : {false, true})
                    if (const auto p = split_by(text, {sign, device_first});
                        p && is_usual_device(p->device)) {
                        auto& [count, characters] = votes[{sign, device_first}];
                        ++count;
                        characters += p->device.size();
                    }
            if (const auto p = split_words(text, false);
                p && !p->more && !is_usual_device(p->host) && !is_usual_device(p->device))
                followers[p->host].insert(p->device);
        }
        // Devices with names that nobody knows stand behind the host, unless so many words follow one that it
        // can be no host.
        constexpr std::size_t most_hcas = 16;  // of a host
        for (const auto& [first, words] : followers)
            votes[{' ', words.size() > most_hcas}].first += words.size();
        // Of two that say as much the host is first, and "mlx5_ib0" is a device rather than "ib0".
        const auto worth = [](const auto& vote) {
            return std::tuple(vote.second.first, !vote.first.device_first, vote.second.second);
        };
        const auto most = std::ranges::max_element(votes, {}, worth);
        if (most != votes.end()) usual_ = most->first;
        for (const auto text : descriptions)
            if (const auto p = split_by(text, words()); p && !is_aggregation(text)) kinds_.add(*p);
    }

    hca_name read(std::string_view text) const {
        hca_name out;
        if (is_aggregation(text)) return out.kind = hca_name::trust::aggregation, out;
        const auto p = host_and_device(text);
        if (!p) return out.kind = hca_name::trust::factory, out;
        out.host = p->host;
        out.device_name = p->device;
        if (const auto device = read_device_name(p->device))
            out.naming = device->naming, out.device = device->number;
        // The name of an installer's image: several hosts may have it, so it names none of them.
        static constexpr std::string_view images[] = {"localhost", "localhost.localdomain", "ubuntu",
                                                      "debian", "(none)"};
        if (std::find(std::begin(images), std::end(images), out.host) != std::end(images))
            out.kind = hca_name::trust::generic;
        return out;
    }

  private:
    description_form words() const { return {' ', usual_.sign == ' ' && usual_.device_first}; }

    std::optional<parts> host_and_device(std::string_view text) const {
        if (const auto p = split_by(text, usual_); p && (is_usual_device(p->device) || kinds_.has(*p)))
            return p;
        // Some hosts may keep the form that rdma-ndd has by itself.
        if (const auto p = split_by(text, {}); p && is_usual_device(p->device)) return p;
        if (const auto p = split_by(text, words()); p && kinds_.has(*p)) return p;
        if (text.empty() || text.find(' ') != text.npos) return std::nullopt;
        return parts{text, {}};
    }

    description_form usual_;
    device_kinds kinds_;
};

}  // namespace

std::vector<hca_name> read_hca_names(const std::vector<std::string_view>& descriptions) {
    std::vector<std::string_view> trimmed;
    trimmed.reserve(descriptions.size());
    for (const auto text : descriptions) trimmed.push_back(trim(text));
    const description_reader reader(trimmed);
    std::vector<hca_name> out;
    out.reserve(trimmed.size());
    for (const auto text : trimmed) out.push_back(reader.read(text));
    return out;
}

std::vector<hca_name> split_hca_names(const std::vector<std::string_view>& names) {
    std::vector<hca_name> out(names.size());
    for (std::size_t i = 0; i < names.size(); ++i) {
        const auto blank = std::min(names[i].find(' '), names[i].size());
        out[i].host = names[i].substr(0, blank);
        out[i].device_name = trim(names[i].substr(blank));
        if (const auto device = read_device_name(out[i].device_name))
            out[i].naming = device->naming, out[i].device = device->number;
    }
    return out;
}

}  // namespace banyan::topo
