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

/// What `read` finds of the job's session.
template <class Read>
auto of_session(std::string_view text, std::uint32_t job, const Read& read)
    -> decltype(read(json_fields({}))) {
    const auto status = nlohmann::json::parse(text, nullptr, false);
    const auto sessions = json_fields(status).list("sessions");
    if (!sessions) return std::nullopt;
    for (const auto& session : *sessions)
        if (session.number("job") == job) return read(session);
    return std::nullopt;
}

}  // namespace

std::string checkpoint_socket(const std::string& node) {
    if (const char* given = std::getenv("BANYAN_CKPT_SOCKET"); given && *given) return given;
    auto file = config_file::load(default_config_path());
    if (!file) return {};
    return file->section("ckptd", node).text("socket");
}

std::optional<std::uint64_t> newest_in_status(std::string_view text, std::uint32_t job) {
    return of_session(text, job, [](const json_fields& session) -> std::optional<std::uint64_t> {
        const auto committed = session.object("committed");
        const auto step = committed ? committed->number("step") : std::unexpected(committed.error());
        return step ? std::optional(*step) : std::nullopt;
    });
}

std::optional<hang> hang_in_status(std::string_view text, std::uint32_t job) {
    return of_session(text, job, [](const json_fields& session) -> std::optional<hang> {
        const auto hung = session.object("hung");
        if (!hung) return std::nullopt;
        auto ranks = hung->numbers("ranks", SIZE_MAX);
        const auto step = hung->number("step");
        const auto words = hung->text("text");
        if (!ranks || !step || !words) return std::nullopt;
        return hang{std::move(*ranks), *step, *words};
    });
}

std::optional<hang> hang_of(const std::string& socket, std::uint32_t job) {
    if (socket.empty()) return std::nullopt;
    const auto text = ckpt::status(socket, timeout);
    return text ? hang_in_status(*text, job) : std::nullopt;
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
