// SPDX-License-Identifier: BSD-3-Clause
#include "fault/look_main.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/prctl.h>

#include "common/child.hpp"
#include "common/clock.hpp"
#include "common/log_file.hpp"
#include "hardware/gpus.hpp"
#include "hardware/hca_counters.hpp"
#include "hardware/hca_ports.hpp"
#include "hardware/pci_places.hpp"
#include "hardware/verbs.hpp"

namespace banyan::fault {
namespace {

nlohmann::json look_at_hcas(const std::string& root, const std::vector<std::string>& names) {
    const auto ports = hardware::read_counters(root, names);
    return ports ? hardware::to_json(*ports) : nlohmann::json{{"error", ports.error().text()}};
}

/// Whether the driver shows a GPU; also where that cannot be told.
bool may_have_gpus(const std::string& root) {
    std::error_code failed;
    const std::filesystem::path folder = root + "/proc/driver/nvidia/gpus";
    if (!std::filesystem::exists(folder, failed)) return static_cast<bool>(failed);
    return !std::filesystem::is_empty(folder, failed) || failed;
}

nlohmann::json look_at_gpus(const std::string& root, const std::string& library) {
    auto nvml = hardware::open_nvml(library);
    if (!nvml && !may_have_gpus(root)) return hardware::to_json(hardware::gpu_answers{});
    if (!nvml) return {{"error", nvml.error().text()}};
    const auto all = hardware::ask_all(**nvml);
    return all ? hardware::to_json(*all) : nlohmann::json{{"error", all.error().text()}};
}

nlohmann::json look_for_pci() {
    const auto all = hardware::look_at_pci();
    return all ? hardware::to_json(*all) : nlohmann::json{{"error", all.error().text()}};
}

void say(const nlohmann::json& told) {
    std::puts(told.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
    (void)std::fflush(stdout);
}

/// Whether the kernel shows any HCA; also where that cannot be told.
bool may_have_hcas(const std::string& root) {
    const auto ports = hardware::find_ports(root);
    return !ports || !ports->empty();
}

// Prints what the HCAs tell as it comes, and every ten seconds that it still listens. Devices come and go,
// and so does the library, where drivers are installed later.
int listen_to_hcas(const std::string& root, const std::string& library) {
    constexpr std::chrono::seconds turn(10);
    std::unique_ptr<hardware::verbs_events> verbs;
    for (;;) {
        std::set<std::string> blind;
        if (!verbs) {
            if (auto opened = hardware::open_verbs(library, root))
                verbs = std::move(*opened);
            else if (may_have_hcas(root))
                blind.insert(opened.error().text());
        }
        if (verbs) {
            for (const auto& e : verbs->rescan()) say(to_json(e));
            blind = verbs->blind();
        }
        say({{"devices", verbs ? verbs->devices() : 0}, {"blind", blind}});
        const auto until = clock::now() + turn;
        while (const auto left = clock::poll_ms(until)) {
            if (verbs && verbs->devices() > 0)
                for (const auto& e : verbs->wait(std::chrono::milliseconds(left))) say(to_json(e));
            else
                std::this_thread::sleep_for(std::chrono::milliseconds(left));
        }
    }
}

}  // namespace

int print_look(const std::string& what, const std::string& root, const std::vector<std::string>& names) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // for nobody, where the agent is gone
    nlohmann::json told;
    if (what == "hcas") {
        told = look_at_hcas(root, names);
    } else if (what == "gpus") {
        told = look_at_gpus(root, names.empty() ? hardware::nvml_library : names.front());
    } else if (what == "pci") {
        told = look_for_pci();
    } else if (what == "hca-events") {
        return listen_to_hcas(root, names.empty() ? "libibverbs.so.1" : names.front());
    } else {
        say_fatal(
            "banyan-faultd", "",
            "there is nothing to look at that is called \"" + what + "\"; try hcas, hca-events, gpus or pci");
        return 2;
    }
    say(told);
    return 0;
}

}  // namespace banyan::fault
