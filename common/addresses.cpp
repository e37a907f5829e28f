// SPDX-License-Identifier: BSD-3-Clause
#include "common/addresses.hpp"

#include <array>
#include <memory>
#include <optional>

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "common/clock.hpp"

namespace banyan {
namespace {

std::optional<std::string> resolve(const std::string& host) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(found->ai_addr, found->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) != 0)
        return std::nullopt;
    return std::string(text.data());
}

}  // namespace

bool is_numeric_address(const std::string& text) {
    std::array<unsigned char, sizeof(in6_addr)> out{};
    return ::inet_pton(AF_INET, text.c_str(), out.data()) == 1 ||
           ::inet_pton(AF_INET6, text.c_str(), out.data()) == 1;
}

std::map<std::string, std::string> numeric_addresses(const std::map<std::string, std::string>& nodes,
                                                     std::chrono::milliseconds most) {
    std::map<std::string, std::string> out;
    const auto until = clock::now() + most;
    for (const auto& [name, addr] : nodes) {
        if (is_numeric_address(addr))
            out.emplace(name, addr);
        else if (clock::now() < until)
            if (const auto number = resolve(addr); number && is_numeric_address(*number))
                out.emplace(name, *number);
    }
    return out;
}

}  // namespace banyan
