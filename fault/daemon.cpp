// SPDX-License-Identifier: BSD-3-Clause
#include "fault/daemon.hpp"

#include <csignal>
#include <functional>

#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include "common/hangup.hpp"
#include "common/limits.hpp"
#include "common/log_file.hpp"
#include "common/ready.hpp"
#include "fault/agent/agent.hpp"
#include "fault/controller/admin.hpp"
#include "fault/controller/controller.hpp"

namespace banyan::fault {
namespace {

constexpr std::size_t blocking_threads = 4;
// What the agents of the largest clusters need, one connection each, and room for the rest.
constexpr std::size_t controller_files = 16'384, agent_files = 256;

void raise_files(std::size_t needed, const char* why) {
    if (const auto got = raise_descriptor_limit(needed); !got)
        spdlog::warn("{}: {}", got.error().text(), why);
}

std::shared_ptr<metrics> make_metrics(const config& settings) {
    auto out = std::make_shared<metrics>();
    if (settings.metrics.empty()) return out;
    if (const auto where = out->serve(settings.metrics))
        spdlog::info("metrics on {}", *where);
    else
        spdlog::error("{}", where.error().text());  // a daemon that heals is worth more than its numbers
    return out;
}

// Runs `io` until a signal; what threw out of a coroutine is a bug, is said, and does not end the daemon.
void run_until_signal(asio::io_context& io) {
    std::signal(SIGPIPE, SIG_IGN);
    hangup reopens(io);
    asio::signal_set signals(io, SIGTERM, SIGINT);
    signals.async_wait([&io](const boost::system::error_code& ec, int number) {
        if (ec) return;
        spdlog::info("signal {}: ending", number);
        io.stop();
    });
    while (!io.stopped()) {
        try {
            io.run();
        } catch (const std::exception& e) {
            spdlog::critical("a bug: {}", e.what());
        }
    }
}

}  // namespace

int run_agent(config settings) {
    raise_files(agent_files, "the agent may fail to open its log");
    asio::io_context io(1);
    asio::thread_pool pool(blocking_threads);
    auto counters = make_metrics(settings);
    agent it(io, pool, std::move(settings), std::move(counters));
    it.start();
    tell_ready();
    run_until_signal(io);
    pool.stop();
    pool.join();
    return 0;
}

int run_controller(config settings, policy rules) {
    raise_files(controller_files, "agents beyond it are not heard, 12,800 nodes are provided for");
    asio::io_context io(1);
    asio::thread_pool pool(blocking_threads);
    auto counters = make_metrics(settings);
    const auto socket = settings.socket;
    controller it(io, pool, std::move(settings), std::move(rules), std::move(counters), make_slurm_cluster());
    admin_server admin(io, it);
    auto ready = admin.listen(socket);  // first: it also keeps a second controller from opening the history
    if (ready) ready = it.start();
    if (!ready) {
        say_fatal("banyan-faultd", "", ready.error().text());
        return 1;
    }
    asio::signal_set reads_again(io, SIGHUP);
    const std::function<void()> wait = [&] {
        reads_again.async_wait([&](const boost::system::error_code& ec, int) {
            if (ec) return;
            asio::co_spawn(io, it.reload_policy(), asio::detached);
            wait();
        });
    };
    wait();
    tell_ready();
    run_until_signal(io);
    pool.stop();
    pool.join();
    it.finish();
    return 0;
}

}  // namespace banyan::fault
