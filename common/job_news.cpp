// SPDX-License-Identifier: BSD-3-Clause
#include "common/job_news.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "common/fd.hpp"
#include "common/json_fields.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"

namespace banyan {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> news_words{"task-ended", "given-up", "copy-damaged", "sent-damaged",
                                                     "stored-damaged"};
constexpr std::array enders{SIGKILL, SIGTERM, SIGINT, SIGHUP};
constexpr std::array faults{SIGSEGV, SIGBUS, SIGILL};
constexpr int shell_adds = 128;

/// 0: it ended by itself. A shell says by its own exit code what ended its child.
int signal_of(int status) {
    if (WIFSIGNALED(status)) return WTERMSIG(status);
    return WIFEXITED(status) && WEXITSTATUS(status) > shell_adds ? WEXITSTATUS(status) - shell_adds : 0;
}

}  // namespace

bool failed_by_itself(int status) {
    if (!WIFSIGNALED(status) && (!WIFEXITED(status) || WEXITSTATUS(status) == 0)) return false;
    return std::ranges::find(enders, signal_of(status)) == enders.end();
}

bool may_be_hardware(int status) { return std::ranges::find(faults, signal_of(status)) != faults.end(); }

std::string end_in_words(int status) {
    if (!WIFSIGNALED(status)) return fmt::format("exit code {}", WEXITSTATUS(status));
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return name ? fmt::format("signal {} (SIG{})", WTERMSIG(status), name)
                : fmt::format("signal {}", WTERMSIG(status));
}

result<void> tell_agent(const std::string& socket, const job_news& news) {
    sockaddr_un to{};
    if (socket.empty() || socket.size() >= sizeof to.sun_path)
        return fail(errc::invalid_input, fmt::format("no socket can be at \"{}\"", socket));
    to.sun_family = AF_UNIX;
    std::memcpy(to.sun_path, socket.data(), socket.size());
    json meta{{"what", news_words[static_cast<std::size_t>(news.what)]},
              {"job", news.job},
              {"step", news.step},
              {"rank", news.rank},
              {"status", news.status},
              {"more", news.more},
              {"text", printable(begin_of(news.text, job_news::max_text))}};
    const auto text = meta.dump(-1, ' ', false, json::error_handler_t::replace);
    const unique_fd from(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!from) return fail_errno("cannot make a socket", errno);
    if (::sendto(from.get(), text.data(), text.size(), MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&to),
                 sizeof to) >= 0)
        return {};
    const int why = errno;
    const auto code = why == ENOENT || why == ECONNREFUSED ? errc::not_found : errc::unavailable;
    return fail(code, fmt::format("cannot tell the agent at {}: {}", socket, std::strerror(why)));
}

result<job_news> job_news_from(std::string_view datagram) {
    const auto meta = json::parse(datagram, nullptr, false);
    if (!meta.is_object()) return fail(errc::invalid_input, "what came is not an object");
    const json_fields in(meta);
    job_news out;
    BANYAN_TRY(const auto what, in.one_of("what", news_words));
    BANYAN_TRY(const auto job, in.number("job", UINT32_MAX));
    BANYAN_TRY(const auto step, in.number("step", UINT32_MAX));
    BANYAN_TRY(const auto rank, in.number("rank", UINT32_MAX));
    BANYAN_TRY(const auto status, in.integer("status", INT32_MIN, INT32_MAX));
    BANYAN_TRY(out.more, in.number("more", UINT32_MAX));
    // Cleaned by the sender, and each byte may then be four.
    BANYAN_TRY(out.text, in.text("text", 4 * job_news::max_text));
    if (job == 0) return fail(errc::invalid_input, "it is of no job");
    out.what = static_cast<job_news::kind>(what);
    out.job = static_cast<std::uint32_t>(job);
    out.step = static_cast<std::uint32_t>(step);
    out.rank = static_cast<std::uint32_t>(rank);
    out.status = static_cast<int>(status);
    return out;
}

}  // namespace banyan
