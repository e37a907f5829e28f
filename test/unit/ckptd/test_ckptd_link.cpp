// SPDX-License-Identifier: BSD-3-Clause
//
// The calling end of a connection: a transfer, against a peer that breaks it off, and words without a reply.
#include <csignal>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <catch2/catch.hpp>

#include "ckptd/agreement/key.hpp"
#include "ckptd/buffers/memory.hpp"
#include "ckptd/net/link.hpp"
#include "cluster.hpp"
#include "common/peer/listener.hpp"

namespace test_ckptd_link {

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

/// Says to the daemon of node 1 what a daemon called `name` might.
class asker {
  public:
    asker(const cluster& c, const std::string& name)
        : settings_(peer::settings::of(peer_role, name, c.dir() + "/munge/socket", false, munge_, workers_)),
          link_(std::make_shared<ckpt::link>(io_.get_executor(),
                                             link_options{"n1", c.addr(1), c.port(), &settings_})) {}
    result<nlohmann::json> call(peer_message type, nlohmann::json meta) {
        std::optional<result<nlohmann::json>> out;
        run([&]() -> task<void> { out.emplace(co_await link_->call(type, std::move(meta), 3s)); });
        return *out;
    }
    result<void> tell(peer_message type, nlohmann::json meta) {
        std::optional<result<void>> out;
        run([&]() -> task<void> { out.emplace(co_await link_->tell(type, std::move(meta), 3s)); });
        return *out;
    }

  private:
    template <class Work>
    void run(const Work& work) {
        asio::co_spawn(io_, work, [](std::exception_ptr e) { CHECK_FALSE(e); });
        io_.restart();
        io_.run();
    }
    asio::io_context io_;
    asio::thread_pool munge_{1}, workers_{1};
    peer::settings settings_;
    std::shared_ptr<ckpt::link> link_;
};

}  // namespace

TEST_CASE("a daemon's word about states opens what a job may have, and nothing else", "[ckptd]") {
    cluster c({1, "", {}});
    auto r = c.request(7, 1, 2, "", 0);
    r.nodes[0].ranks = {0};
    r.nodes[0].buddy = 1;
    r.nodes.push_back({"n2", "127.0.0.1", {1}, 0});
    c.open(r);
    REQUIRE(step_open(c.socket(1), {7, 0, {"n1", "n2"}}, 5s));
    rank_process rank(c, 1, 7, 0, 2, 1000);
    CHECK(rank.ask("save 1") == BCK_OK);
    const auto generation = c.session(1, 7)["generation"].get<std::uint64_t>();
    const auto word = [&](const nlohmann::json& state) {
        nlohmann::json meta{{"job", 7}, {"generation", generation}, {"messages", nlohmann::json::array()}};
        meta["state"] = state;
        return meta;
    };
    asker n2(c, "n2");
    for (const nlohmann::json& name : {nlohmann::json(""), nlohmann::json("../ema"), nlohmann::json(7),
                                       nlohmann::json(std::string(100, 'a')), nlohmann::json(nullptr)})
        CHECK_FALSE(n2.call(peer_message::agree, word(name)));
    // What a state's word is before that of the agreement is not known to be of this launch.
    for (const auto type : {peer_message::put_begin, peer_message::flush, peer_message::durable,
                            peer_message::flushed, peer_message::warning, peer_message::get})
        CHECK_FALSE(n2.call(type, word("ema")));
    CHECK_FALSE(c.session(1, 7).contains("states"));
    const auto held = n2.call(peer_message::holdings, word("ema"));
    REQUIRE(held);
    CHECK((*held)["copies"].empty());
    CHECK_FALSE(asker(c, "n3").call(peer_message::agree, word("ema")));  // none of the job's
    auto later = word("ema");
    later["generation"] = make_generation(0, 5);
    CHECK(n2.call(peer_message::agree, later));  // a launch that was not announced here
    CHECK_FALSE(c.session(1, 7).contains("states"));
    for (int i = 0; i < 50; ++i)
        CHECK(n2.call(peer_message::agree, word("s" + std::to_string(i))).has_value() == (i < 4));
    CHECK(c.session(1, 7)["states"].size() == 4);
    // Daemons that know of no such states see another type; and none is a state's without its name.
    const auto named = static_cast<peer_message>(static_cast<unsigned>(peer_message::agree) | of_named_state);
    auto nameless = word("");
    nameless.erase("state");
    CHECK_FALSE(n2.call(named, nameless));
    CHECK(asker(c, "n2").call(peer_message::agree, nameless));
    CHECK(c.session(1, 7)["states"].size() == 4);
}

TEST_CASE("what has no reply is not answered when it is refused, and the next request is", "[ckptd]") {
    cluster c({1, "", {}});
    auto r = c.request(7, 1, 2, "", 0);
    r.nodes[0].ranks = {0};
    r.nodes.push_back({"n2", "127.0.0.1", {1}, 0});
    c.open(r);
    REQUIRE(step_open(c.socket(1), {7, 0, {"n1", "n2"}}, 5s));
    rank_process rank(c, 1, 7, 0, 2, 1000);
    CHECK(rank.ask("save 1") == BCK_OK);
    nlohmann::json right{{"job", 7}, {"generation", c.session(1, 7)["generation"]}};
    const nlohmann::json known{{"job", 7}, {"generation", 1}};
    for (const auto* name : {"n2", "n3"}) {
        asker other(c, name);
        auto outdated = right, without_job = right, spoilt = right;
        outdated["generation"] = 0;
        without_job.erase("job");
        spoilt["messages"] = "none";
        for (const auto& word : {outdated, without_job, spoilt, right}) {
            CHECK(other.tell(peer_message::agreed, word));
            CHECK(other.call(peer_message::ping, nlohmann::json::object()) == nlohmann::json::object());
        }
    }
}

TEST_CASE("a word to a daemon that was started again reaches the new one", "[ckptd]") {
    cluster c({1, "", {}});
    asker other(c, "n2");
    REQUIRE(other.call(peer_message::ping, nlohmann::json::object()));
    c.kill(1, SIGKILL);
    CHECK_FALSE(other.tell(peer_message::agreed, nlohmann::json::object()));
    REQUIRE(c.start(1));
    pass(100ms);  // longer than one that has just gone is taken for dead
    CHECK(other.tell(peer_message::agreed, nlohmann::json::object()));
    CHECK(other.call(peer_message::ping, nlohmann::json::object()));
}

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

}  // namespace test_ckptd_link
