// SPDX-License-Identifier: BSD-3-Clause
//
// The result type of everything that can go wrong in banyan. Exceptions are for bugs and for memory that ran
// out; they are caught at the edges (common/guard.hpp), never used for what a user, a file or the network can
// cause.
#pragma once

#include <expected>
#include <string>
#include <system_error>
#include <utility>

namespace banyan {

/// What kind of thing went wrong; decides exit codes and whether a caller tries again.
enum class errc {
    invalid_input,  ///< the text, file or message is not what its format says
    not_found,      ///< the named object does not exist
    denied,         ///< the caller may not do this, or a file is not to be trusted
    unavailable,    ///< a peer, daemon or file system does not answer now; trying again may help
    exhausted,      ///< memory, disk, queue or a configured limit is used up
    conflict,       ///< the request contradicts the present state
    internal,       ///< ours: should not happen
};

/// An error as a person reads it: what happened to which object, and what to try. `hint` may be empty.
struct error {
    errc code = errc::internal;
    std::string what;
    std::string hint;

    /// One line: "what; hint".
    std::string text() const { return hint.empty() ? what : what + "; " + hint; }
};

template <class T>
using result = std::expected<T, error>;

/// Shorthand: `return fail(errc::not_found, "node n01 is not in the snapshot", "run banyan-topo snapshot")`.
inline std::unexpected<error> fail(errc code, std::string what, std::string hint = {}) {
    return std::unexpected(error{code, std::move(what), std::move(hint)});
}

/// An error from errno: "cannot open /x: Permission denied".
inline std::unexpected<error> fail_errno(const std::string& doing, int err, std::string hint = {}) {
    errc code = errc::unavailable;
    if (err == ENOENT) code = errc::not_found;
    if (err == EACCES || err == EPERM || err == EROFS) code = errc::denied;
    if (err == ENOSPC || err == EDQUOT || err == ENOMEM) code = errc::exhausted;
    return fail(code, doing + ": " + std::generic_category().message(err), std::move(hint));
}

}  // namespace banyan

// g++ 12's std::expected has no monadic members; these two lines stand for them.
#define BANYAN_CONCAT_(a, b) a##b
#define BANYAN_CONCAT(a, b) BANYAN_CONCAT_(a, b)
/// BANYAN_TRY(auto x, f()): x gets the value, or the enclosing function returns the error.
#define BANYAN_TRY(decl, expr) BANYAN_TRY_(decl, expr, BANYAN_CONCAT(banyan_try_, __LINE__), return )
/// The same in a coroutine.
#define BANYAN_CO_TRY(decl, expr) BANYAN_TRY_(decl, expr, BANYAN_CONCAT(banyan_try_, __LINE__), co_return )
#define BANYAN_TRY_(decl, expr, tmp, ret)                  \
    auto tmp = (expr);                                     \
    if (!tmp) ret std::unexpected(std::move(tmp).error()); \
    decl = std::move(*tmp)
/// BANYAN_CHECK(f()): for result<void>.
#define BANYAN_CHECK(expr)                                            \
    do {                                                              \
        if (auto banyan_check_ = (expr); !banyan_check_)              \
            return std::unexpected(std::move(banyan_check_).error()); \
    } while (0)
#define BANYAN_CO_CHECK(expr)                                            \
    do {                                                                 \
        if (auto banyan_check_ = (expr); !banyan_check_)                 \
            co_return std::unexpected(std::move(banyan_check_).error()); \
    } while (0)
