// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of the agreement as JSON and back, by their fields(). Of what does not fit from_json throws
// nlohmann's exceptions: remember.cpp catches them.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "ckptd/agreement/agreement.hpp"

namespace banyan::ckpt::archive {

using nlohmann::json;

template <class T>
concept has_fields = requires(T& t) {
    T::fields(t, [](const char*, auto&) {});
};

/// As bytes: of ten thousand ranks' slots every event writes all.
template <class T>
concept has_numbers = requires(T& t) {
    t.data();
    t.resize(0);
    requires std::is_arithmetic_v<typename T::value_type>;
};

// Plain structures, as the tuples of their members: `f` gets them all.
template <class F>
void members(auto& v, F&& f) {
    using type = std::remove_cvref_t<decltype(v)>;
    if constexpr (std::same_as<type, copy_key>)
        f(v.generation, v.step);
    else if constexpr (std::same_as<type, agreement::ballot>)
        f(v.number, v.nonce);
    else if constexpr (std::same_as<type, agreement::held>)
        f(v.key, v.rank);
    else if constexpr (std::same_as<type, agreement::saved_steps>)
        f(v.first, v.end);
    else if constexpr (std::same_as<type, agreement::shelf::copy>)
        f(v.number, v.what, v.own, v.checked, v.voted);
    else if constexpr (std::same_as<type, agreement::launch>)
        f(v.generation, v.self, v.nodes, v.world, v.slot_of_rank, v.nonce, v.forgetful);
    else
        f(v.first, v.second);  // an entry of a map
}

template <class T>
json put(const T& v) {
    if constexpr (std::is_arithmetic_v<T>) {
        return v;
    } else if constexpr (std::is_enum_v<T>) {
        return static_cast<unsigned>(v);
    } else if constexpr (has_fields<const T>) {
        json out = json::object();
        T::fields(v, [&](const char* name, const auto& one) { out[name] = put(one); });
        return out;
    } else if constexpr (requires { v.has_value(); }) {
        json out = json::array();
        if (v) out.push_back(put(*v));
        return out;
    } else if constexpr (has_numbers<T>) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(v.data());
        return json::binary({bytes, bytes + v.size() * sizeof(typename T::value_type)});
    } else if constexpr (requires { v.begin(); }) {
        json out = json::array();
        for (const auto& one : v) out.push_back(put(one));
        return out;
    } else {
        json out = json::array();
        members(v, [&](const auto&... each) { (out.push_back(put(each)), ...); });
        return out;
    }
}

template <class T>
void take(const json& in, T& v) {
    if constexpr (std::is_arithmetic_v<T>) {
        v = in.get<T>();
    } else if constexpr (std::is_enum_v<T>) {
        v = static_cast<T>(in.get<unsigned>());
    } else if constexpr (has_fields<T>) {
        T::fields(v, [&](const char* name, auto& one) { take(in.at(name), one); });
    } else if constexpr (requires { v.has_value(); }) {
        v.reset();
        if (!in.empty()) take(in.at(0), v.emplace());
    } else if constexpr (has_numbers<T>) {
        const auto& bytes = in.get_binary();
        v.resize(bytes.size() / sizeof(typename T::value_type));
        std::copy_n(bytes.begin(), v.size() * sizeof(typename T::value_type),
                    reinterpret_cast<std::uint8_t*>(v.data()));
    } else if constexpr (requires { typename T::mapped_type; }) {
        v.clear();
        for (const auto& one : in) {
            std::pair<typename T::key_type, typename T::mapped_type> entry;
            take(one, entry);
            v.insert(std::move(entry));
        }
    } else if constexpr (requires { typename T::key_type; }) {
        v.clear();
        for (const auto& one : in) {
            typename T::key_type entry;
            take(one, entry);
            v.insert(std::move(entry));
        }
    } else if constexpr (requires { v.push_back(*v.begin()); }) {
        v.clear();
        for (const auto& one : in) take(one, v.emplace_back());
    } else {
        std::size_t at = 0;
        members(v, [&](auto&... each) { (take(in.at(at++), each), ...); });
    }
}

}  // namespace banyan::ckpt::archive
