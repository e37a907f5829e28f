// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/progress.hpp"

#include <chrono>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "ckptd/protocol/protocol.hpp"
#include "common/config.hpp"

namespace banyan::supervisor {
namespace {

// Short: the next step waits for the answer. Without one the restart merely counts as one without progress.
constexpr std::chrono::milliseconds timeout{200};

}  // namespace

std::string checkpoint_socket(const std::string& node) {
    if (const char* given = std::getenv("BANYAN_CKPT_SOCKET"); given && *given) return given;
    auto file = config_file::load(default_config_path());
    if (!file) return {};
    return file->section("ckptd", node).text("socket");
}

std::optional<std::uint64_t> newest_in_status(std::string_view text, std::uint32_t job) {
    const auto status = nlohmann::json::parse(text, nullptr, false);
    if (!status.is_object() || !status.contains("sessions") || !status["sessions"].is_array())
        return std::nullopt;
    for (const auto& session : status["sessions"]) {
        if (!session.is_object() || session.value("job", nlohmann::json()) != job) continue;
        const auto committed = session.find("committed");
        if (committed == session.end() || !committed->is_object()) continue;
        const auto step = committed->find("step");
        if (step != committed->end() && step->is_number_unsigned()) return step->get<std::uint64_t>();
    }
    return std::nullopt;
}

std::optional<std::uint64_t> newest_saved(const std::string& socket, std::uint32_t job) {
    if (socket.empty()) return std::nullopt;
    const auto text = ckpt::status(socket, timeout);
    return text ? newest_in_status(*text, job) : std::nullopt;
}

}  // namespace banyan::supervisor
