// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/statement.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "common/json_fields.hpp"
#include "common/wire.hpp"

namespace banyan::peer {
namespace {

nlohmann::json fields(const statement& s, bool by_caller) {
    return {{"protocol", protocol_version},
            {"speaker", by_caller ? "caller" : "listener"},
            {"role", s.role},
            {"caller", s.caller},
            {"wanted", s.wanted},
            {"listener", s.listener},
            {"caller_at", s.caller_at},
            {"listener_at", s.listener_at},
            {"caller_key", s.caller_key},
            {"listener_key", s.listener_key},
            {"encrypt", s.encrypt}};
}

}  // namespace

std::string statement::text(bool by_caller) const {
    return fields(*this, by_caller).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

error statement::difference(const std::string& theirs, bool by_caller) const {
    const auto other = wire::decode_meta(std::as_bytes(std::span(theirs)));
    if (!other) return {errc::denied, "the peer's credential was made for something else", ""};
    const auto mine = fields(*this, by_caller);
    const auto differs = [&](const char* key) { return !other->contains(key) || (*other)[key] != mine[key]; };
    const auto shown = [&](const char* key) {
        return json_fields(*other).text(key, max_node_name + 16).value_or("?");
    };
    // Addresses first: behind an address translation both ends are honest.
    if (differs("caller_at") || differs("listener_at"))
        return {errc::denied,
                fmt::format("the peer states a connection from {} to {}, this one is from {} to {}",
                            shown("caller_at"), shown("listener_at"), caller_at, listener_at),
                "addresses between the nodes must not be translated; if they are not, somebody relays"};
    for (const auto* key : {"speaker", "role", "wanted", "caller", "listener"})
        if (differs(key))
            return {errc::denied,
                    fmt::format("the peer states {} \"{}\", expected \"{}\"", key, shown(key),
                                mine[key].get<std::string>()),
                    ""};
    return {errc::denied, "the peer's credential was made for another connection", ""};
}

std::string to_text(const boost::asio::ip::tcp::endpoint& at) {
    const auto address = at.address();
    if (address.is_v4()) return fmt::format("{}:{}", address.to_string(), at.port());
    auto v6 = address.to_v6();
    if (v6.is_v4_mapped())
        return fmt::format(
            "{}:{}", boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, v6).to_string(), at.port());
    v6.scope_id(0);  // a number of this node's own
    return fmt::format("[{}]:{}", v6.to_string(), at.port());
}

result<void> check_node_name(const std::string& name) {
    const auto fits = [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; };
    if (!name.empty() && name.size() <= max_node_name && std::all_of(name.begin(), name.end(), fits))
        return {};
    return fail(errc::invalid_input, "the peer's node has no usable name");
}

}  // namespace banyan::peer
