// SPDX-License-Identifier: BSD-3-Clause
//
// What the C functions share: nothing throws out of them, every failure leaves its words for bck_error().
#pragma once

#include <exception>
#include <string>
#include <string_view>
#include <unordered_map>

#include <banyan/ckpt.h>

#include "ckptd/client/outcome.hpp"
#include "ckptd/store/safetensors.hpp"

/// What a checkpoint holds of one rank.
struct bck_contents {
    explicit bck_contents(banyan::ckpt::image_contents of);

    banyan::ckpt::image_contents image;
    std::unordered_map<std::string_view, std::size_t> by_name;
};

namespace banyan::ckpt {

class client;
/// NULL is the state without a name.
client& client_of(bck_state* state);

inline thread_local std::string last_error;

template <class Body>
int report(Body&& body) noexcept {
    try {
        auto done = body();
        last_error = std::move(done.text);
        return done.code;
    } catch (const std::exception& e) {
        try {
            last_error = e.what();
        } catch (...) {
            last_error.clear();
        }
        return BCK_E_MEMORY;
    } catch (...) {
        return BCK_E_MEMORY;
    }
}

}  // namespace banyan::ckpt
