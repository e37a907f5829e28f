// SPDX-License-Identifier: BSD-3-Clause
//
// The state behind the C functions: regions, the image's header, the connection. One lock around all of it.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "ckptd/client/connection.hpp"
#include "ckptd/store/safetensors.hpp"

namespace banyan::ckpt {

/// A failure as the C interface reports it.
struct outcome {
    int code = 0;
    std::string text;
};

class client {
  public:
    outcome init(const char* job, int rank, int world);
    outcome protect(const char* name, void* ptr, std::size_t bytes, const char* dtype,
                    const std::uint64_t* shape, int ndim);
    outcome checkpoint(std::uint64_t step);
    outcome wait(std::uint64_t step, int level, int timeout_ms);
    outcome restart_test(std::uint64_t* step);
    outcome restart(std::uint64_t* step, int* source);
    outcome finalize(bool drain);

  private:
    struct place {
        void* ptr = nullptr;
        bool on_device = false;
    };
    outcome ready();
    outcome off(const error& e);
    outcome ask(message type, const nlohmann::json& meta, std::chrono::milliseconds timeout,
                nlohmann::json* reply);
    bool daemon_gone() const;
    int free_buffer();
    outcome fill(std::byte* buffer, std::uint64_t step);
    outcome take(std::byte* buffer, std::uint64_t bytes, std::uint64_t step);
    void tell_warning();
    void detach();

    std::mutex lock_;
    bool initialised_ = false;
    pid_t pid_ = 0;
    std::uint64_t job_ = 0;
    std::uint32_t rank_ = 0, world_ = 0;
    std::string socket_;
    std::chrono::milliseconds buffer_timeout_{2000};
    std::vector<region> regions_;
    std::vector<place> places_;
    image_header image_;
    bool layout_changed_ = true;
    connection connection_;
    bool pinned_ = false;
    std::chrono::steady_clock::time_point next_try_{};
    std::string off_because_;
    std::uint64_t sealed_ = 0;  ///< newest sealed step, plus 1
    std::uint32_t warnings_seen_ = 0;
};

}  // namespace banyan::ckpt
