// SPDX-License-Identifier: BSD-3-Clause
//
// Connections of an agent that outlive each other.
#include <boost/asio/detached.hpp>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "fault/controller/hub.hpp"
#include "test/unit/fault/talk_bench.hpp"

namespace test_hub {

using namespace banyan;
using namespace banyan::fault;
using namespace banyan::fault::testing;
using namespace std::chrono_literals;
using nlohmann::json;

namespace {

/// A hub alone. What its agents tell is not kept before `release`.
class hub_bench : public talk_bench {
  public:
    asio::io_context io;
    asio::thread_pool pool{2}, munge{1};
    int told = 0, kept = 0, gone = 0;
    bool release = false;
    hub it{io,
           pool,
           settings,
           figures,
           {.cursor_of = [](const std::string&) -> std::optional<cursor> { return std::nullopt; },
            .lost_ports = [](const std::string&)
                -> std::vector<std::pair<std::string, std::vector<std::string>>> { return {}; },
            .events = [this](std::string, std::vector<event>,
                             std::function<void()> then) { return keep(std::move(then)); },
            .moved = [](std::string, cursor) {},
            .self_sealed = [](std::string, std::int64_t, std::string) {},
            .heard = [this](const std::string&, bool here) { gone += !here; }}};

    hub_bench() { REQUIRE(it.listen(settings.bind, settings.port)); }
    ~hub_bench() {
        pool.join();
        munge.join();
    }
    bool until(const std::function<bool()>& so) { return time.until(io, so); }
    /// The agent of n03, by hand: its connection as soon as it is welcome.
    std::shared_ptr<channel> agent() {
        std::shared_ptr<channel> out;
        asio::co_spawn(io, connect(out), asio::detached);
        REQUIRE(until([&] { return out != nullptr; }));
        return out;
    }

  private:
    task<void> keep(std::function<void()> then) {
        ++told;
        banyan::timer timer(io);
        while (!release) {
            timer.expires_after(5ms);
            co_await timer.async_wait(as_result);
        }
        ++kept;
        then();
    }
    task<void> connect(std::shared_ptr<channel>& out) {
        const auto own = peer::settings::of(peer_role, "n03", munged.socket(), false, munge, pool);
        auto opened = co_await peer::connect_peer("127.0.0.1", settings.port, "", own);
        if (!opened) co_return;
        auto link = std::make_shared<channel>(std::move(*opened));
        json hello = {{"node", "n03"}, {"boot", "boot"}, {"gpus", 8}};
        (void)co_await link->peer().write_frame(code(message::hello), std::move(hello));
        (void)co_await link->peer().read_frame();
        link->start();
        out = std::move(link);
    }
};

json batch(int number) {
    return {{"batch", number}, {"now_ms", clock::wall_ms()}, {"events", json::array()}};
}

}  // namespace

TEST_CASE("a connection that ends after a newer one of its node leaves nothing behind", "[fault]") {
    hub_bench b;
    const auto first = b.agent();
    REQUIRE(first->send(message::events, batch(1)));
    REQUIRE(b.until([&] { return b.told == 1; }));
    const auto second = b.agent();
    second->close();
    REQUIRE(b.until([&] { return b.gone == 1; }));
    b.release = true;
    REQUIRE(b.until([&] { return b.kept == 1; }));
    b.time.pass(b.io, 50ms);
    std::optional<seal_report> sealed;
    const auto seal = [&]() -> task<void> {
        std::vector<std::string> nodes{"n03"};
        sealed = co_await b.it.seal(std::move(nodes), 0, 1s);
    };
    asio::co_spawn(b.io, seal(), asio::detached);
    REQUIRE(b.until([&] { return sealed.has_value(); }));
    CHECK(sealed->silent == std::vector<std::string>{"n03"});
    CHECK(b.gone == 1);
    first->close();
}

}  // namespace test_hub
