// SPDX-License-Identifier: BSD-3-Clause
//
// The calling end of a transfer, against a peer that breaks it off.
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch.hpp>

#include "ckptd/buffers/memory.hpp"
#include "ckptd/net/link.hpp"
#include "cluster.hpp"
#include "common/peer/listener.hpp"

using namespace ckptd_test;
using namespace banyan;
using namespace banyan::ckpt;

namespace {

/// Another node's daemon, as far as it gives shards away. The first `broken` connections end before the
/// first chunk.
class giver {
  public:
    giver(const cluster& c, std::vector<std::byte> image, int broken)
        : image_(std::move(image)),
          broken_(broken),
          listener_(io_.get_executor(),
                    peer::settings::of(peer_role, "n9", c.dir() + "/munge/socket", false, munge_, workers_),
                    {}, [this](auto connection) { return serve(std::move(connection)); }) {
        const auto open = listener_.open(at, c.port());
        if (!open) FAIL(open.error().text());
        link_ = std::make_shared<ckpt::link>(io_.get_executor(),
                                             link_options{"n9", at, c.port(), &listener_.handshake()});
    }
    result<std::uint64_t> get(const ckpt::link::room& into) {
        std::optional<result<std::uint64_t>> out;
        const auto work = [&]() -> task<void> {
            nlohmann::json meta = nlohmann::json::object();
            std::vector<std::uint32_t> chunks;
            out.emplace(co_await link_->get(std::move(meta), into, &chunks));
            link_->close();
            listener_.close();
        };
        asio::co_spawn(io_, work, [](std::exception_ptr e) { CHECK_FALSE(e); });
        io_.run();
        return *out;
    }
    int connections() const { return connections_; }

  private:
    static constexpr auto at = "127.0.0.1";

    task<void> serve(std::shared_ptr<peer::channel> connection) {
        const bool whole = ++connections_ > broken_;
        const auto asked = co_await connection->read_head();
        if (!asked) co_return;
        nlohmann::json found;
        found["bytes"] = image_.size();
        found["chunks"] = chunk_checksums(image_);
        const auto said = co_await connection->write_frame(static_cast<std::uint16_t>(peer_message::reply),
                                                           std::move(found));
        for (std::size_t i = 0; said && whole && i < chunk_count(image_.size()); ++i) {
            nlohmann::json none = nlohmann::json::object();
            const auto chunk = chunk_of(std::span<std::byte>(image_), i);
            const auto sent = co_await connection->write_frame(
                static_cast<std::uint16_t>(peer_message::get_chunk), std::move(none), chunk);
            if (!sent) co_return;
        }
        if (whole) co_await connection->read_head();  // until the caller hangs up
    }

    std::vector<std::byte> image_;
    const int broken_;
    int connections_ = 0;
    asio::io_context io_;
    asio::thread_pool munge_{1}, workers_{1};
    peer::listener listener_;
    std::shared_ptr<ckpt::link> link_;
};

}  // namespace

TEST_CASE("a transfer that ended while room was made is tried once more, with that room", "[ckptd]") {
    cluster c({1, "", {}});
    const std::vector<std::byte> image(5'000'003, std::byte{7});
    for (const int broken : {0, 1, 2}) {
        giver other(c, image, broken);
        std::vector<std::byte> memory;
        int made = 0;
        const ckpt::link::room into = [&](std::uint64_t bytes) -> task<result<std::span<std::byte>>> {
            ++made;
            memory.resize(bytes);
            co_return std::span<std::byte>(memory);
        };
        const auto got = other.get(into);
        CHECK(made == 1);
        CHECK(got.has_value() == (broken < 2));
        if (got) CHECK(memory == image);
        if (!got) CHECK(got.error().code == errc::unavailable);
        CHECK(other.connections() == std::min(broken + 1, 2));
    }
}
