// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/munge.hpp"

#include <cstdlib>
#include <memory>

#include <fmt/format.h>
#include <munge.h>

namespace banyan::munge {
namespace {

struct context_deleter {
    void operator()(munge_ctx_t c) const { ::munge_ctx_destroy(c); }
};
using context = std::unique_ptr<std::remove_pointer_t<munge_ctx_t>, context_deleter>;

result<context> make_context(const std::string& socket) {
    context c(::munge_ctx_create());
    if (!c) return fail(errc::exhausted, "no memory for a munge context");
    if (!socket.empty() && ::munge_ctx_set(c.get(), MUNGE_OPT_SOCKET, socket.c_str()) != EMUNGE_SUCCESS)
        return fail(errc::invalid_input, fmt::format("munge does not take the socket {}", socket));
    return c;
}

std::unexpected<error> munge_error(const char* doing, const context& c, munge_err_t e) {
    const char* text = ::munge_ctx_strerror(c.get());
    const bool no_daemon = e == EMUNGE_SOCKET;
    return fail(no_daemon ? errc::unavailable : errc::denied,
                fmt::format("munge cannot {} a credential: {}", doing, text ? text : ::munge_strerror(e)),
                no_daemon ? "is munged running on this node?" : "");
}

}  // namespace

result<std::string> encode(const std::string& socket, const std::string& payload,
                           std::optional<uid_t> reader) {
    BANYAN_TRY(const auto c, make_context(socket));
    if (reader && ::munge_ctx_set(c.get(), MUNGE_OPT_UID_RESTRICTION, *reader) != EMUNGE_SUCCESS)
        return fail(errc::internal, fmt::format("munge does not restrict a credential to uid {}", *reader));
    char* text = nullptr;
    const auto e = ::munge_encode(&text, c.get(), payload.data(), static_cast<int>(payload.size()));
    const std::unique_ptr<char, decltype(&::free)> owned(text, &::free);
    if (e != EMUNGE_SUCCESS) return munge_error("encode", c, e);
    return std::string(text);
}

result<credential> decode(const std::string& socket, const std::string& text) {
    BANYAN_TRY(const auto c, make_context(socket));
    void* payload = nullptr;
    int bytes = 0;
    credential out;
    const auto e = ::munge_decode(text.c_str(), c.get(), &payload, &bytes, &out.uid, &out.gid);
    const std::unique_ptr<void, decltype(&::free)> owned(payload, &::free);
    if (e != EMUNGE_SUCCESS) return munge_error("decode", c, e);
    out.payload.assign(static_cast<const char*>(payload), static_cast<std::size_t>(bytes));
    return out;
}

}  // namespace banyan::munge
