// SPDX-License-Identifier: BSD-3-Clause
#include "common/ready.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#include <sys/socket.h>
#include <sys/un.h>

#include "common/fd.hpp"
#include "common/log.hpp"

namespace banyan {

void tell_ready() {
    constexpr std::string_view message = "READY=1";
    const char* const named = std::getenv("NOTIFY_SOCKET");
    const std::string_view path = named ? named : "";
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof to.sun_path) return;
    std::memcpy(to.sun_path, path.data(), path.size());
    if (path.front() == '@') to.sun_path[0] = '\0';  // an abstract name
    const unique_fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
    if (!socket || ::sendto(socket.get(), message.data(), message.size(), MSG_NOSIGNAL,
                            reinterpret_cast<const sockaddr*>(&to), size) < 0)
        spdlog::warn("the service manager cannot be told that the daemon is ready: {}",
                     std::generic_category().message(errno));
}

}  // namespace banyan
