// SPDX-License-Identifier: BSD-3-Clause
//
// Strangers on the daemons' TCP port, for the tests: whoever begins a handshake that he cannot finish, a peer
// that is root but none of the job, a relay between two daemons, and a listener on the wire. All blocking.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "ckptd/net/peer.hpp"
#include "common/fd.hpp"
#include "common/peer/keys.hpp"
#include "common/peer/statement.hpp"
#include "common/wire.hpp"

namespace hostile {

using nlohmann::json;

/// A TCP connection from `from`; `reserved`: from a port below 1024. Fails the test when it cannot be made.
banyan::unique_fd dial(const std::string& to, std::uint16_t port, bool reserved = true,
                       const std::string& from = "127.0.0.1");
/// Whether anybody listens there.
bool answers(const std::string& to, std::uint16_t port);
/// True when the other end closes within `timeout`; what it sends before is thrown away.
bool is_closed(int fd, std::chrono::milliseconds timeout = std::chrono::seconds(10));

/// The calling end of a handshake, step by step.
class caller {
  public:
    caller(const std::string& to, std::uint16_t port, std::string node, std::string wanted,
           const std::string& role = banyan::ckpt::peer_role, const std::string& from = "127.0.0.1");
    /// Sends hello and reads the challenge; nothing when there is none.
    std::optional<json> greet();
    /// What a true caller would state now.
    const banyan::peer::statement& statement() const { return statement_; }
    /// Sends `credential` as the proof and returns the frame type of the answer, 0 when there is none.
    std::uint16_t prove(const std::string& credential);
    /// After a welcome: one request on the protected connection, and its answer.
    std::optional<json> ask(std::uint16_t type, const json& meta, const std::string& body = {});
    /// The same without waiting for an answer, and of the body's end so many bytes are kept back.
    bool say(std::uint16_t type, const json& meta, std::string body, std::size_t kept_back = 0);
    int fd() const { return fd_.get(); }

  private:
    banyan::unique_fd fd_;
    banyan::peer::key_pair keys_;
    banyan::peer::key theirs_{};
    banyan::peer::statement statement_;
    std::optional<banyan::peer::frame_cipher> sending_, receiving_;
};

constexpr std::uint16_t welcome = 0xff04, refused = 0xff05;

/// Holds `at`:`port` and passes every connection on to `to`, from a port below 1024.
class relay {
  public:
    relay(const std::string& at, const std::string& to, std::uint16_t port);
    ~relay();
    /// Everything that came in from the calling side so far.
    std::string heard() const;
    std::size_t connections() const { return connections_; }

  private:
    void serve();
    void pass(int from, int to, bool record);
    banyan::unique_fd listener_;
    std::string to_;
    std::uint16_t port_;
    std::atomic<bool> over_{false};
    std::atomic<std::size_t> connections_{0};
    mutable std::mutex lock_;
    std::string heard_;
    std::thread worker_;
};

/// Whether the other end has closed by now.
bool has_hung_up(int fd);

/// Reads all packets on the loopback interface while it lives.
class wire_tap {
  public:
    wire_tap();
    ~wire_tap();
    bool saw(const std::string& what) const;

  private:
    banyan::unique_fd fd_;
    std::atomic<bool> over_{false};
    mutable std::mutex lock_;
    std::string seen_;
    std::thread worker_;
};

/// Resident memory of a process, in bytes.
std::size_t resident(pid_t pid);

}  // namespace hostile
