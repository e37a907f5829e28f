// SPDX-License-Identifier: BSD-3-Clause
//
// One prepared SQLite statement: bind in order, step, read columns. Private to history/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "common/result.hpp"

namespace banyan::fault {

/// What came of the last call. Unavailable: another process has it locked, which passes.
inline std::unexpected<error> history_error(sqlite3* db) {
    const int why = sqlite3_errcode(db) & 0xff;
    const auto code = why == SQLITE_FULL                           ? errc::exhausted
                      : why == SQLITE_BUSY || why == SQLITE_LOCKED ? errc::unavailable
                                                                   : errc::denied;
    return fail(code, std::string("the history cannot be used: ") + sqlite3_errmsg(db),
                "see [fault] history: is the disk full or read-only?");
}

class statement {
  public:
    statement(sqlite3* db, const char* sql) : db_(db) {
        sqlite3_stmt* made = nullptr;
        if (sqlite3_prepare_v2(db, sql, -1, &made, nullptr) == SQLITE_OK) it_.reset(made);
    }
    statement& bind(std::string_view text) {
        if (it_)
            sqlite3_bind_text(it_.get(), ++bound_, text.data(), static_cast<int>(text.size()),
                              SQLITE_TRANSIENT);
        return *this;
    }
    statement& bind(std::int64_t value) {
        if (it_) sqlite3_bind_int64(it_.get(), ++bound_, value);
        return *this;
    }
    /// True: there is a row. False: done. An error otherwise.
    result<bool> step() {
        const int rc = it_ ? sqlite3_step(it_.get()) : SQLITE_ERROR;
        if (rc == SQLITE_ROW) return true;
        if (rc == SQLITE_DONE) return false;
        return history_error(db_);
    }
    std::string text(int column) const {
        const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(it_.get(), column));
        return data ? std::string(data, static_cast<std::size_t>(sqlite3_column_bytes(it_.get(), column)))
                    : std::string();
    }
    std::int64_t number(int column) const { return sqlite3_column_int64(it_.get(), column); }

  private:
    struct finalizer {
        void operator()(sqlite3_stmt* s) const { sqlite3_finalize(s); }
    };
    sqlite3* db_;
    std::unique_ptr<sqlite3_stmt, finalizer> it_;
    int bound_ = 0;
};

}  // namespace banyan::fault
