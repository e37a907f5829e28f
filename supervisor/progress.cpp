// SPDX-License-Identifier: BSD-3-Clause
#include "supervisor/progress.hpp"

#include <chrono>
#include <cstdlib>

#include <nlohmann/json.hpp>

#include "ckptd/protocol/protocol.hpp"
#include "common/config.hpp"
#include "common/json_fields.hpp"

namespace banyan::supervisor {
namespace {

// Short: the next step waits for the answer. Without one the restart merely counts as one without progress.
constexpr std::chrono::milliseconds timeout{200};
// The last word: nothing waits for it but the end.
constexpr std::chrono::milliseconds said_within{1000};

}  // namespace

std::string checkpoint_socket(const std::string& node) {
    if (const char* given = std::getenv("BANYAN_CKPT_SOCKET"); given && *given) return given;
    auto file = config_file::load(default_config_path());
    if (!file) return {};
    return file->section("ckptd", node).text("socket");
}

std::optional<std::uint64_t> newest_in_status(std::string_view text, std::uint32_t job) {
    const auto status = nlohmann::json::parse(text, nullptr, false);
    const auto sessions = json_fields(status).list("sessions");
    if (!sessions) return std::nullopt;
    for (const auto& session : *sessions) {
        if (session.number("job") != job) continue;
        const auto committed = session.object("committed");
        if (!committed) continue;
        if (const auto step = committed->number("step")) return *step;
    }
    return std::nullopt;
}

std::optional<std::uint64_t> newest_saved(const std::string& socket, std::uint32_t job) {
    if (socket.empty()) return std::nullopt;
    const auto text = ckpt::status(socket, timeout);
    return text ? newest_in_status(*text, job) : std::nullopt;
}

result<void> give_up_at(const std::string& socket, std::uint32_t job, std::uint32_t step,
                        const std::string& why) {
    if (socket.empty()) return fail(errc::not_found, "the job has no checkpoint daemon");
    return ckpt::give_up(socket, job, step, why, said_within);
}

}  // namespace banyan::supervisor
