// SPDX-License-Identifier: BSD-3-Clause
#include "hardware/hca_ports.hpp"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "common/text.hpp"
#include "hardware/small_file.hpp"

namespace banyan::hardware {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_entries = 4096;

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

hca_port read_port(const port_place& at) {
    hca_port out{at.device, at.port, {}, {}, {}, {}, at.error};
    if (!at.error.empty()) return out;
    for (const auto& [file, into] :
         {std::pair{"state", &out.state}, {"phys_state", &out.phys_state}, {"rate", &out.rate}}) {
        if (auto text = read_small(at.folder / file))
            *into = std::move(*text);
        else if (out.error.empty())
            out.error = text.error().text();
    }
    out.layer = read_small(at.folder / "link_layer").value_or("");  // older kernels do not have it
    return out;
}

}  // namespace

result<std::vector<port_place>> find_ports(const fs::path& root) {
    const auto classes = root / "sys/class";
    std::error_code failed;
    if (!fs::is_directory(classes, failed))
        return fail(errc::unavailable, fmt::format("there is no {}", classes.string()), "is /sys mounted?");
    const auto devices = classes / "infiniband";
    std::vector<port_place> out;
    const auto there = fs::exists(devices, failed);
    if (failed) return fail_errno("cannot look at " + devices.string(), failed.value());
    if (!there) return out;
    BANYAN_TRY(const auto names, names_in(devices));
    for (const auto& device : names) {
        auto ports = names_in(devices / device / "ports");
        if (!ports) {
            out.push_back({device, "?", {}, ports.error().text()});
            continue;
        }
        for (const auto& port : *ports) out.push_back({device, port, devices / device / "ports" / port, {}});
    }
    return out;
}

std::string pci_address(const fs::path& root, const std::string& device) {
    std::error_code failed;
    const auto target = fs::read_symlink(root / "sys/class/infiniband" / device / "device", failed);
    return failed ? "" : target.filename().string();
}

result<std::vector<hca_port>> read_ports(const fs::path& root) {
    BANYAN_TRY(const auto places, find_ports(root));
    std::vector<hca_port> out;
    for (const auto& at : places) out.push_back(read_port(at));
    return out;
}

}  // namespace banyan::hardware
