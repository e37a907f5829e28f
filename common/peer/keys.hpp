// SPDX-License-Identifier: BSD-3-Clause
//
// What two daemons need to keep others out of their connection: a key agreement (X25519, RFC 7748, and
// HKDF-SHA256, RFC 5869) and a cipher per direction (AES-256-GCM, NIST SP 800-38D), all of it OpenSSL's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace banyan::peer {

constexpr std::size_t key_bytes = 32;
constexpr std::size_t tag_bytes = 16;
using key = std::array<std::byte, key_bytes>;
using tag = std::array<std::byte, tag_bytes>;

/// One key for what the caller sends, one for what the listener sends.
struct channel_keys {
    key from_caller, from_listener;
};

/// Our half of an agreement: made anew for every connection, so that what is recorded today cannot be read
/// with a key that is stolen tomorrow.
class key_pair {
  public:
    static result<key_pair> make();
    const key& public_key() const { return public_; }
    /// The keys that only the owner of `theirs` can also compute. Both ends must give the same `transcript`.
    result<channel_keys> agree(const key& theirs, std::string_view transcript) const;

  private:
    struct deleter {
        void operator()(void* p) const;
    };
    std::unique_ptr<void, deleter> own_;  // an EVP_PKEY
    key public_{};
};

/// One direction of a connection. Every message has the next number of a counter, so that none can be
/// repeated, left out or moved. Not thread-safe; one that failed to open must not be used any more.
class frame_cipher {
  public:
    explicit frame_cipher(const key& k);

    /// Authenticates `clear` and `text`; with `out` (as long as `text`) encrypts `text` into it.
    tag seal(std::span<const std::byte> clear, std::span<const std::byte> text, std::byte* out);
    /// The reverse, in place: true when both are as they were sealed. With `encrypted` `text` is decrypted.
    bool open(std::span<const std::byte> clear, std::span<std::byte> text, const tag& t, bool encrypted);

    // The same in pieces, for a text that is sent or has come in part: begin, its pieces in order, end.
    void begin_seal(std::span<const std::byte> clear);
    void seal_piece(std::span<const std::byte> text, std::byte* out);
    tag end_seal();
    void begin_open(std::span<const std::byte> clear);
    void open_piece(std::span<std::byte> text, bool encrypted);
    bool end_open(const tag& t);

  private:
    struct deleter {
        void operator()(void* p) const;
    };
    void begin(bool sealing);
    std::unique_ptr<void, deleter> context_;  // an EVP_CIPHER_CTX
    std::uint64_t next_ = 0;
};

/// Lower-case hexadecimal digits and back.
std::string to_hex(const key& k);
result<key> from_hex(std::string_view text);

}  // namespace banyan::peer
