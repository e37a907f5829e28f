// SPDX-License-Identifier: BSD-3-Clause
#include "sweep/links.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "common/text.hpp"
#include "sweep/small_file.hpp"

namespace banyan::sweep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_entries = 4096;
constexpr std::size_t most_flaws = 16;

/// Names in a folder, with "mlx5_2" before "mlx5_10".
result<std::vector<std::string>> names_in(const fs::path& folder) {
    std::error_code failed;
    std::vector<std::string> out;
    for (auto it = fs::directory_iterator(folder, failed); !failed && it != fs::directory_iterator();
         it.increment(failed)) {
        if (out.size() == most_entries)
            return fail(errc::exhausted,
                        fmt::format("{} has more than {} entries", folder.string(), most_entries));
        out.push_back(it->path().filename().string());
    }
    if (failed) return fail_errno("cannot list " + folder.string(), failed.value());
    const auto key = [](const std::string& name) {
        const auto digits = name.find_last_not_of("0123456789") + 1;
        const auto number = parse_number(std::string_view(name).substr(digits));
        return std::tuple(name.substr(0, digits), number.value_or(0), name);
    };
    std::ranges::sort(out, {}, key);
    return out;
}

hca_port read_port(const fs::path& folder, const std::string& device, const std::string& port) {
    hca_port out{device, port, {}, {}, {}, {}};
    for (const auto& [file, into] :
         {std::pair{"state", &out.state}, {"phys_state", &out.phys_state}, {"rate", &out.rate}}) {
        if (auto text = read_small(folder / file))
            *into = std::move(*text);
        else if (out.error.empty())
            out.error = text.error().text();
    }
    out.layer = read_small(folder / "link_layer").value_or("");  // older kernels do not have it
    return out;
}

/// The "4" of "4: ACTIVE".
std::string_view number_of(std::string_view state) { return state.substr(0, state.find(':')); }
std::string_view word_of(std::string_view state) {
    const auto colon = state.find(':');
    return trim(colon == std::string_view::npos ? state : state.substr(colon + 1));
}

/// The 400 of "400 Gb/sec (4X NDR)".
double gbits(std::string_view rate) {
    double out = 0;
    if (rate.empty() || rate.front() < '0' || rate.front() > '9')
        return 0;  // "nan" and "inf" are numbers, too
    std::from_chars(rate.data(), rate.data() + rate.size(), out);
    return out;
}

/// What keeps a port that could be read from counting; empty for one that counts.
std::string flaw_of(const hca_port& p, std::uint32_t rate) {
    if (number_of(p.state) != "4" || number_of(p.phys_state) != "5")
        return fmt::format("{} is {}, {}", p.name(), word_of(p.state), word_of(p.phys_state));
    if (gbits(p.rate) < rate) return fmt::format("{} runs at {}, expected {} Gb/s", p.name(), p.rate, rate);
    return {};
}

}  // namespace

result<std::vector<hca_port>> read_ports(const fs::path& root) {
    const auto classes = root / "sys/class";
    std::error_code failed;
    if (!fs::is_directory(classes, failed))
        return fail(errc::unavailable, fmt::format("there is no {}", classes.string()), "is /sys mounted?");
    const auto devices = classes / "infiniband";
    std::vector<hca_port> out;
    const auto there = fs::exists(devices, failed);
    if (failed) return fail_errno("cannot look at " + devices.string(), failed.value());
    if (!there) return out;
    BANYAN_TRY(const auto names, names_in(devices));
    for (const auto& device : names) {
        auto ports = names_in(devices / device / "ports");
        if (!ports) {
            out.push_back({device, "?", {}, {}, {}, {}, ports.error().text()});
            continue;
        }
        for (const auto& port : *ports)
            out.push_back(read_port(devices / device / "ports" / port, device, port));
    }
    return out;
}

finding judge_ports(const std::vector<hca_port>& ports, std::uint32_t wanted, std::uint32_t rate) {
    std::size_t active = 0, unread = 0, ethernet = 0;
    std::vector<std::string> flaws;
    for (const auto& p : ports) {
        if (!p.layer.empty() && p.layer != "InfiniBand") {
            ++ethernet;
        } else if (!p.error.empty()) {
            ++unread;
            flaws.push_back(fmt::format("{} could not be read: {}", p.name(), p.error));
        } else if (auto flaw = flaw_of(p, rate); !flaw.empty()) {
            flaws.push_back(std::move(flaw));
        } else {
            ++active;
        }
    }
    finding out;
    out.is = active >= wanted ? verdict::fit : active + unread >= wanted ? verdict::unknown : verdict::unfit;
    out.what.push_back(fmt::format("{} InfiniBand port{} active{}, expected {}", active,
                                   active == 1 ? " is" : "s are",
                                   rate > 0 ? fmt::format(" with {} Gb/s or more", rate) : "", wanted));
    if (ethernet > 0)
        out.what.push_back(
            fmt::format("{} Ethernet port{} not count", ethernet, ethernet == 1 ? " does" : "s do"));
    const auto told = std::min(flaws.size(), most_flaws);
    out.what.insert(out.what.end(), flaws.begin(), flaws.begin() + static_cast<std::ptrdiff_t>(told));
    if (flaws.size() > told) out.what.push_back(fmt::format("and {} more", flaws.size() - told));
    out.figures["links_active"] = static_cast<double>(active);
    return out;
}

}  // namespace banyan::sweep
