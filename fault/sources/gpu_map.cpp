// SPDX-License-Identifier: BSD-3-Clause
#include "fault/sources/gpu_map.hpp"

#include "common/file.hpp"
#include "common/text.hpp"
#include "fault/sources/kernel_fault.hpp"

namespace banyan::fault {

void gpu_map::refresh(const std::filesystem::path& root) {
    constexpr std::size_t most_cards = 64, most_bytes = 64 * 1024;
    std::error_code ec;
    std::size_t seen = 0;
    for (std::filesystem::directory_iterator it(root / "proc/driver/nvidia/gpus", ec), end; !ec && it != end;
         it.increment(ec)) {
        if (++seen > most_cards) return;
        const auto place = take_bdf(it->path().filename().string());
        const auto text = read_file(it->path() / "information", most_bytes);
        if (!place || !text) continue;
        auto& known = places_[place->first];
        for (const auto line : split(*text, '\n')) {
            const auto colon = line.find(':');
            if (colon == std::string_view::npos) continue;
            const auto key = trim(line.substr(0, colon)), value = trim(line.substr(colon + 1));
            if (key == "Device Minor") {
                if (const auto minor = parse_number(value, most_cards))
                    known.minor = static_cast<int>(*minor);
            } else if (key == "GPU UUID") {
                known.uuid = value.substr(0, 64);
            } else if (key == "Model") {
                known.model = value.substr(0, 64);
            }
        }
    }
}

void gpu_map::learn(const gpu_identity& told) {
    auto& known = places_[told.bdf];
    if (!told.serial.empty()) known.serial = told.serial;
    if (told.uuid.empty() || told.uuid == known.uuid) return;
    known.uuid = told.uuid;
    known.serial = told.serial;  // the former card's is not this one's
}

std::uint32_t driver_branch(const std::filesystem::path& root) {
    constexpr std::size_t most_bytes = 4096;
    const auto text = read_file(root / "proc/driver/nvidia/version", most_bytes);
    return text ? driver_branch_in(*text).value_or(0) : 0;
}

const gpu_place* gpu_map::find(const std::string& bdf) const {
    const auto it = places_.find(bdf);
    return it == places_.end() ? nullptr : &it->second;
}

}  // namespace banyan::fault
