// SPDX-License-Identifier: BSD-3-Clause
//
// A JSON file whose author may be anybody, as a stream: read in blocks, summed up, and at its end where it is
// longer than it may be, or where one token is. A parser keeps a token whole: it is measured before.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <streambuf>
#include <string_view>

#include <unistd.h>

#include "common/crc32c.hpp"

namespace banyan::ckpt {

/// Measures the tokens of a JSON text as its bytes come: texts, keys, numbers, words and blanks.
class token_meter {
  public:
    explicit token_meter(std::size_t most) : most_(most) {}

    /// How many bytes of `text`, which follows what came before, go by until a token is longer than it may
    /// be.
    std::size_t pass(std::string_view text) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            const char c = text[i];
            const bool ends = in_text_ ? c == '"' && !escaped_ : is_structure(c);
            if (ends || (!in_text_ && c == '"')) {
                in_text_ = !in_text_ && c == '"';
                length_ = 0;
                escaped_ = false;
                continue;
            }
            escaped_ = in_text_ && c == '\\' && !escaped_;
            if (++length_ > most_) return i;
        }
        return text.size();
    }

  private:
    static bool is_structure(char c) {
        return c == '{' || c == '}' || c == '[' || c == ']' || c == ',' || c == ':';
    }
    std::size_t most_, length_ = 0;
    bool in_text_ = false, escaped_ = false;
};

class summed_file : public std::streambuf {
  public:
    /// At most `most` bytes of the descriptor, in tokens of at most `most_token`.
    summed_file(int fd, std::uint64_t most, std::size_t most_token)
        : fd_(fd), left_(most), tokens_(most_token) {}
    std::uint32_t crc() const { return crc_; }
    /// The errno of a read that failed; 0 if none did.
    int failed() const { return failed_; }
    bool too_long() const { return left_ == 0; }
    bool has_long_token() const { return long_token_; }

  private:
    int_type underflow() override {
        const auto want = long_token_ ? 0 : std::min<std::uint64_t>(block_.size(), left_);
        ssize_t got = 0;
        do got = want == 0 ? 0 : ::read(fd_, block_.data(), want);
        while (got < 0 && errno == EINTR);
        if (got < 0) failed_ = errno;
        if (got <= 0) return traits_type::eof();
        const auto n = static_cast<std::size_t>(got);
        left_ -= n;
        crc_ = crc32c(std::as_bytes(std::span(block_.data(), n)), crc_);
        const auto good = tokens_.pass({block_.data(), n});
        long_token_ = good < n;
        setg(block_.data(), block_.data(), block_.data() + good);
        return good == 0 ? traits_type::eof() : traits_type::to_int_type(block_[0]);
    }

    int fd_;
    std::uint64_t left_;
    std::uint32_t crc_ = 0;
    int failed_ = 0;
    token_meter tokens_;
    bool long_token_ = false;
    std::array<char, 64u << 10> block_;
};

}  // namespace banyan::ckpt
