// SPDX-License-Identifier: BSD-3-Clause
#include "common/peer/keys.hpp"

#include <charconv>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>

namespace banyan::peer {
namespace {

unsigned char* bytes(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }
EVP_CIPHER_CTX* context_of(const auto& held) { return static_cast<EVP_CIPHER_CTX*>(held.get()); }
const unsigned char* bytes(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }

// OpenSSL fails here only without memory or without its own algorithms.
void must(int ok, const char* what) {
    if (ok != 1) throw std::runtime_error(fmt::format("OpenSSL: {} failed", what));
}

struct pkey_context_deleter {
    void operator()(EVP_PKEY_CTX* c) const { EVP_PKEY_CTX_free(c); }
};
using pkey_context = std::unique_ptr<EVP_PKEY_CTX, pkey_context_deleter>;

void derive(std::span<const unsigned char> secret, std::string_view salt, std::span<std::byte> out) {
    constexpr char info[] = "banyan peer channel";
    const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> kdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                                &EVP_KDF_free);
    const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(EVP_KDF_CTX_new(kdf.get()),
                                                                            &EVP_KDF_CTX_free);
    char digest[] = "SHA256";
    const std::array<OSSL_PARAM, 5> parameters{
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<unsigned char*>(secret.data()),
                                          secret.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, const_cast<char*>(salt.data()), salt.size()),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, const_cast<char*>(info), sizeof info - 1),
        OSSL_PARAM_construct_end()};
    must(context ? EVP_KDF_derive(context.get(), bytes(out.data()), out.size(), parameters.data()) : 0,
         "HKDF");
}

}  // namespace

void key_pair::deleter::operator()(void* p) const { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); }

result<key_pair> key_pair::make() {
    key_pair out;
    out.own_.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "X25519"));
    std::size_t size = key_bytes;
    if (!out.own_ || EVP_PKEY_get_raw_public_key(static_cast<EVP_PKEY*>(out.own_.get()),
                                                 bytes(out.public_.data()), &size) != 1)
        return fail(errc::exhausted, "OpenSSL cannot make a key");
    return out;
}

result<channel_keys> key_pair::agree(const key& theirs, std::string_view transcript) const {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> peer(
        EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, bytes(theirs.data()), key_bytes),
        &EVP_PKEY_free);
    const pkey_context context(EVP_PKEY_CTX_new(static_cast<EVP_PKEY*>(own_.get()), nullptr));
    std::array<unsigned char, key_bytes> secret{};
    std::size_t size = secret.size();
    // Refuses a key of small order, whose secret anybody knows.
    if (!peer || !context || EVP_PKEY_derive_init(context.get()) != 1 ||
        EVP_PKEY_derive_set_peer(context.get(), peer.get()) != 1 ||
        EVP_PKEY_derive(context.get(), secret.data(), &size) != 1 || size != secret.size())
        return fail(errc::denied, "the peer's key is not one to agree with");
    std::array<std::byte, 2 * key_bytes> both{};
    derive(secret, transcript, both);
    channel_keys out;
    std::memcpy(out.from_caller.data(), both.data(), key_bytes);
    std::memcpy(out.from_listener.data(), both.data() + key_bytes, key_bytes);
    OPENSSL_cleanse(secret.data(), secret.size());
    OPENSSL_cleanse(both.data(), both.size());
    return out;
}

void frame_cipher::deleter::operator()(void* p) const {
    EVP_CIPHER_CTX_free(static_cast<EVP_CIPHER_CTX*>(p));
}

frame_cipher::frame_cipher(const key& k) : context_(EVP_CIPHER_CTX_new()) {
    auto* c = static_cast<EVP_CIPHER_CTX*>(context_.get());
    must(c ? EVP_CipherInit_ex(c, EVP_aes_256_gcm(), nullptr, bytes(k.data()), nullptr, 1) : 0,
         "AES-256-GCM");
}

void frame_cipher::begin(bool sealing) {
    std::array<unsigned char, 12> nonce{};
    std::memcpy(nonce.data() + 4, &next_, sizeof next_);
    ++next_;
    must(EVP_CipherInit_ex(static_cast<EVP_CIPHER_CTX*>(context_.get()), nullptr, nullptr, nullptr,
                           nonce.data(), sealing),
         "a nonce");
}

tag frame_cipher::seal(std::span<const std::byte> clear, std::span<const std::byte> text, std::byte* out) {
    begin_seal(clear);
    seal_piece(text, out);
    return end_seal();
}

void frame_cipher::begin_seal(std::span<const std::byte> clear) {
    begin(true);
    int n = 0;
    must(EVP_EncryptUpdate(context_of(context_), nullptr, &n, bytes(clear.data()),
                           static_cast<int>(clear.size())),
         "sealing");
}

void frame_cipher::seal_piece(std::span<const std::byte> text, std::byte* out) {
    if (text.empty()) return;
    int n = 0;
    must(EVP_EncryptUpdate(context_of(context_), out ? bytes(out) : nullptr, &n, bytes(text.data()),
                           static_cast<int>(text.size())),
         "sealing");
}

tag frame_cipher::end_seal() {
    auto* c = context_of(context_);
    int n = 0;
    std::array<unsigned char, tag_bytes> none{};
    must(EVP_EncryptFinal_ex(c, none.data(), &n), "sealing");
    tag t{};
    must(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, tag_bytes, t.data()), "a tag");
    return t;
}

bool frame_cipher::open(std::span<const std::byte> clear, std::span<std::byte> text, const tag& t,
                        bool encrypted) {
    begin_open(clear);
    open_piece(text, encrypted);
    return end_open(t);
}

void frame_cipher::begin_open(std::span<const std::byte> clear) {
    begin(false);
    int n = 0;
    must(EVP_DecryptUpdate(context_of(context_), nullptr, &n, bytes(clear.data()),
                           static_cast<int>(clear.size())),
         "opening");
}

void frame_cipher::open_piece(std::span<std::byte> text, bool encrypted) {
    if (text.empty()) return;
    int n = 0;
    must(EVP_DecryptUpdate(context_of(context_), encrypted ? bytes(text.data()) : nullptr, &n,
                           bytes(text.data()), static_cast<int>(text.size())),
         "opening");
}

bool frame_cipher::end_open(const tag& t) {
    auto* c = context_of(context_);
    auto expected = t;
    must(EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, tag_bytes, expected.data()), "a tag");
    int n = 0;
    std::array<unsigned char, tag_bytes> none{};
    return EVP_DecryptFinal_ex(c, none.data(), &n) == 1;
}

std::string to_hex(const key& k) {
    std::string out;
    for (const auto b : k) out += fmt::format("{:02x}", static_cast<unsigned>(b));
    return out;
}

result<key> from_hex(std::string_view text) {
    key out{};
    if (text.size() != 2 * key_bytes) return fail(errc::invalid_input, "a key is not 64 digits long");
    for (std::size_t i = 0; i < key_bytes; ++i) {
        unsigned value = 0;
        const auto* at = text.data() + 2 * i;
        if (const auto [end, ec] = std::from_chars(at, at + 2, value, 16); ec != std::errc{} || end != at + 2)
            return fail(errc::invalid_input, "a key is not hexadecimal");
        out[i] = static_cast<std::byte>(value);
    }
    return out;
}

}  // namespace banyan::peer
