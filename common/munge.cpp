// SPDX-License-Identifier: BSD-3-Clause
#include "common/munge.hpp"

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
    const auto code = no_daemon ? errc::unavailable : e == EMUNGE_BAD_LENGTH ? errc::exhausted : errc::denied;
    return fail(code,
                fmt::format("munge cannot {} a credential: {}", doing, text ? text : ::munge_strerror(e)),
                no_daemon ? "is munged running on this node?" : "");
}

result<std::string> encode_with(const context& c, const std::string& payload) {
    char* text = nullptr;
    const auto e = ::munge_encode(&text, c.get(), payload.data(), static_cast<int>(payload.size()));
    const std::unique_ptr<char, decltype(&::free)> owned(text, &::free);
    if (e != EMUNGE_SUCCESS) return munge_error("encode", c, e);
    return std::string(text);
}

/// `fine` says which answers of munge's besides success are taken.
template <class Fine>
result<credential> decode_with(const context& c, const std::string& text, Fine fine) {
    void* payload = nullptr;
    int bytes = 0;
    credential out;
    const auto e = ::munge_decode(text.c_str(), c.get(), &payload, &bytes, &out.uid, &out.gid);
    const std::unique_ptr<void, decltype(&::free)> owned(payload, &::free);
    if (e != EMUNGE_SUCCESS && !fine(e)) return munge_error("decode", c, e);
    if (payload) out.payload.assign(static_cast<const char*>(payload), static_cast<std::size_t>(bytes));
    return out;
}

}  // namespace

result<std::string> encode(const std::string& socket, const std::string& payload,
                           std::optional<uid_t> reader) {
    BANYAN_TRY(const auto c, make_context(socket));
    if (reader && ::munge_ctx_set(c.get(), MUNGE_OPT_UID_RESTRICTION, *reader) != EMUNGE_SUCCESS)
        return fail(errc::internal, fmt::format("munge does not restrict a credential to uid {}", *reader));
    return encode_with(c, payload);
}

result<std::string> encode_compressed(const std::string& socket, const std::string& payload) {
    BANYAN_TRY(const auto c, make_context(socket));
    // A munge that was built without zlib says so here; the credential is then as large as its payload.
    ::munge_ctx_set(c.get(), MUNGE_OPT_ZIP_TYPE, static_cast<int>(MUNGE_ZIP_ZLIB));
    return encode_with(c, payload);
}

result<credential> decode(const std::string& socket, const std::string& text) {
    BANYAN_TRY(const auto c, make_context(socket));
    return decode_with(c, text, [](munge_err_t) { return false; });
}

result<credential> decode_kept(const std::string& socket, const std::string& text) {
    BANYAN_TRY(const auto c, make_context(socket));
    // munge gives the payload and its writer with these three answers too: munge_decode(3).
    return decode_with(c, text, [](munge_err_t e) {
        return e == EMUNGE_CRED_EXPIRED || e == EMUNGE_CRED_REWOUND || e == EMUNGE_CRED_REPLAYED;
    });
}

}  // namespace banyan::munge
