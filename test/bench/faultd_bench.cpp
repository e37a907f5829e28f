// SPDX-License-Identifier: BSD-3-Clause
//
// The fault daemons at work: how long a line takes to become an event on its node, and an event to become an
// incident at a controller that hears 512 agents and 1,000 events a second; and what a storm of equal lines
// costs. The controller is the real one, over TCP and munge; the agents send what real ones send.
//     faultd_bench [--json FILE] [--agents N] [--seconds N]
#include <algorithm>
#include <cmath>
#include <fstream>
#include <future>
#include <thread>

#include <CLI/CLI.hpp>
#include <boost/asio/detached.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "common/json_fields.hpp"
#include "fault/agent/event_queue.hpp"
#include "fault/controller/controller.hpp"
#include "fault/policy/policy_file.hpp"
#include "fault/sources/file_follower.hpp"
#include "test/bench/figures.hpp"
#include "test/unit/fault/fake_cluster.hpp"
#include "test/unit/fault/lines.hpp"
#include "test/unit/fault/munge_daemon.hpp"

namespace {

using namespace banyan;
using namespace banyan::fault;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
namespace made = banyan::fault::testing;

double percentile(std::vector<double> all, double share) {
    if (all.empty()) return NAN;
    std::ranges::sort(all);
    return all[std::min(all.size() - 1, static_cast<std::size_t>(share * static_cast<double>(all.size())))];
}

double ms_since(steady_clock::time_point then) {
    return std::chrono::duration<double, std::milli>(steady_clock::now() - then).count();
}

std::size_t resident_kib() {
    std::ifstream in("/proc/self/statm");
    std::size_t size = 0, resident = 0;
    in >> size >> resident;
    return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) / 1024;
}

class scratch {
  public:
    std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("banyan-faultd-bench-" + std::to_string(::getpid()));
    scratch() { std::filesystem::create_directories(path); }
    ~scratch() { std::filesystem::remove_all(path); }
    std::string munge_socket() const { return (path / "munge/socket").string(); }
};

// -- line to event -----------------------------------------------------------------------------------------

// As the agent reads: the file that is appended to, what the kernel said of it, what that means.
std::vector<double> line_to_event(const scratch& s, int lines) {
    asio::io_context io;
    const auto path = s.path / "kmsg";
    std::ofstream log(path);
    log.flush();
    kernel_log reader(kmsg_trust::injected, false);
    kernel_parser parser;
    std::vector<double> out;
    steady_clock::time_point written;
    file_follower follower(path, file_follower::start::end, [&](const log_line& line) {
        reader.read(line.raw, [&](std::string_view text) {
            if (parser.line(text).fault) out.push_back(ms_since(written));
        });
    });
    asio::co_spawn(io, follower.run(), asio::detached);
    io.poll();
    for (int n = 0; n < lines; ++n) {
        std::this_thread::sleep_for(milliseconds(1));
        written = steady_clock::now();
        log << made::gpu_line(n % 8, "79, pid=1, name=p, GPU has fallen off the bus.") << std::endl;
        const auto until = steady_clock::now() + std::chrono::seconds(5);
        while (out.size() == static_cast<std::size_t>(n) && steady_clock::now() < until)
            io.run_one_for(milliseconds(50));
    }
    follower.stop();
    io.run_for(milliseconds(50));
    return out;
}

// -- agents and a controller -------------------------------------------------------------------------------

struct light_agent {
    peer::settings settings;
    std::shared_ptr<channel> link;
    std::map<std::uint64_t, steady_clock::time_point> sent;  // by batch
    std::uint64_t batch = 0, position = 0;
};

class crowd {
  public:
    crowd(asio::io_context& io, std::size_t agents, const std::string& munge_socket, std::uint16_t port)
        : io_(io), port_(port) {
        for (std::size_t n = 0; n < agents; ++n) {
            all_.push_back(std::make_unique<light_agent>());
            all_.back()->settings =
                peer::settings::of(peer_role, fmt::format("n{:04}", n), munge_socket, false, munge_, pool_);
            all_.back()->settings.timeout = std::chrono::seconds(60);
        }
    }
    ~crowd() {
        pool_.join();
        munge_.join();
    }
    bool connect() {
        // One address may have 32 connections that have not proved anything yet.
        constexpr std::size_t at_once = 16;
        const auto until = steady_clock::now() + std::chrono::seconds(120);
        for (std::size_t n = 0; connected < all_.size() && steady_clock::now() < until;
             io_.run_for(milliseconds(5)))
            for (; n < all_.size() && n < connected + at_once; ++n)
                asio::co_spawn(io_, live(n), asio::detached);
        return connected == all_.size();
    }
    /// One event of agent `n`: `part` names what it speaks of.
    void tell(std::size_t n, std::size_t part) {
        auto& a = *all_[n];
        auto e = made::event_of(fmt::format("NVRM: Xid (PCI:{:04x}:{:02x}:00): 74, pid=1, name=p, NVLink: x",
                                            part / 256, part % 256),
                                clock::wall_ms(), ++a.position, a.settings.node);
        nlohmann::json list = nlohmann::json::array();
        list.push_back(to_json(e));
        nlohmann::json meta = {{"batch", ++a.batch}, {"events", std::move(list)}};
        if (!a.link || !a.link->send(message::events, std::move(meta))) {
            ++lost;
            return;
        }
        a.sent[a.batch] = steady_clock::now();
    }
    std::size_t size() const { return all_.size(); }
    std::size_t waiting() const {
        std::size_t out = 0;
        for (const auto& a : all_) out += a->sent.size();
        return out;
    }
    std::vector<double> acknowledged;
    std::size_t connected = 0, lost = 0;

  private:
    task<void> live(std::size_t n) {
        auto& a = *all_[n];
        // Several addresses: root calls from a reserved port, and has some hundreds of them for each.
        const auto host = fmt::format("127.0.0.{}", 1 + n % 8);
        auto opened = co_await peer::connect_peer(host, port_, "", a.settings);
        if (!opened) {
            fmt::print(stderr, "{}\n", opened.error().text());
            co_return;
        }
        a.link = std::make_shared<channel>(std::move(*opened));
        nlohmann::json hello = {{"node", a.settings.node}, {"boot", "boot"}, {"gpus", 8}};
        const auto said = co_await a.link->peer().write_frame(code(message::hello), std::move(hello));
        if (!said) co_return;
        const auto welcome = co_await a.link->peer().read_frame();
        if (!welcome) co_return;
        a.link->start();
        ++connected;
        for (;;) {
            const auto frame = co_await a.link->peer().read_frame();
            if (!frame) co_return;
            if (frame->type != code(message::ack)) continue;
            const auto batch = json_fields(frame->meta).number("batch");
            const auto at = batch ? a.sent.find(*batch) : a.sent.end();
            if (at == a.sent.end()) continue;
            acknowledged.push_back(ms_since(at->second));
            a.sent.erase(at);
        }
    }

    asio::io_context& io_;
    std::uint16_t port_;
    asio::thread_pool munge_{1}, pool_{1};
    std::vector<std::unique_ptr<light_agent>> all_;
};

// The controller, on a thread of its own.
class running_controller {
  public:
    running_controller(const scratch& s, std::uint16_t port) {
        auto settings = load_config({}, "controller").value();
        settings.bind = "*";
        settings.port = port;
        settings.munge_socket = s.munge_socket();
        settings.history = (s.path / "history.db").string();
        it_ =
            std::make_unique<controller>(io_, pool_, settings, shipped_policy(), std::make_shared<metrics>(),
                                         std::make_unique<made::fake_cluster>(slurm_));
        if (const auto ok = it_->start(); !ok) throw std::runtime_error(ok.error().text());
        thread_ = std::thread([this] {
            const auto keep = asio::make_work_guard(io_);
            io_.run();
        });
    }
    ~running_controller() {
        io_.stop();
        thread_.join();
        pool_.join();
        it_->finish();
    }
    /// From the line to its incident, for each of them.
    std::vector<double> latencies() {
        std::promise<std::vector<double>> out;
        asio::post(io_, [&] {
            std::vector<double> all;
            for (const auto& [number, i] : it_->incidents().all())
                all.push_back(static_cast<double>(i.incident_ms - i.line_ms));
            out.set_value(std::move(all));
        });
        return out.get_future().get();
    }

  private:
    asio::io_context io_{1};
    asio::thread_pool pool_{4};
    made::fake_state slurm_;
    std::unique_ptr<controller> it_;
    std::thread thread_;
};

void measure_controller(const scratch& s, banyan::bench::figures& out, std::size_t agents, int seconds) {
    constexpr int per_second = 1000, fresh_every = 10;
    const made::munge_daemon munged(s.path);
    const std::uint16_t port = static_cast<std::uint16_t>(20'000 + ::getpid() % 20'000);
    running_controller daemon(s, port);
    asio::io_context io;
    crowd everybody(io, agents, s.munge_socket(), port);
    if (!everybody.connect())
        throw std::runtime_error(
            fmt::format("only {} of {} agents are connected", everybody.connected, agents));
    const auto begun = steady_clock::now();
    std::size_t told = 0;
    // At most 1,500 incidents: the controller keeps 2,000 in memory.
    for (const auto all = static_cast<std::size_t>(per_second * seconds); told < all;
         io.run_for(milliseconds(1))) {
        const auto due = std::min(all, static_cast<std::size_t>(ms_since(begun)) * per_second / 1000);
        for (; told < due; ++told) {
            const auto n = told % everybody.size();
            const auto fresh = told / fresh_every;
            everybody.tell(n, told % fresh_every == 0 && fresh < 1500 ? fresh : n % 16);
        }
    }
    const auto took = ms_since(begun) / 1000;
    const auto until = steady_clock::now() + std::chrono::seconds(60);
    while (everybody.waiting() > 0 && steady_clock::now() < until) io.run_for(milliseconds(10));
    const auto with = fmt::format("{} agents, {:.0f} events/s", agents, static_cast<double>(told) / took);
    const auto latencies = daemon.latencies();
    out.add("event to its acknowledgement, p99", percentile(everybody.acknowledged, 0.99), "ms",
            with + "; it is in the history then");
    out.add("line to incident, p50", percentile(latencies, 0.5), "ms", with);
    out.add("line to incident, p99", percentile(latencies, 0.99), "ms",
            fmt::format("{}, {} incidents", with, latencies.size()), "<=", 100);
    out.add("events not acknowledged", static_cast<double>(everybody.waiting() + everybody.lost), "events",
            fmt::format("{} sent", told), "<=", 0);
    io.stop();
}

// -- a storm -----------------------------------------------------------------------------------------------

void measure_storm(banyan::bench::figures& out) {
    constexpr std::uint64_t lines = 800'000;
    const std::string line =
        "2,1,2,-;" + made::gpu_line(3, "95, pid=1, name=p, Uncontained: LTC TAG (0x2, 0x1). RST: Yes");
    kernel_log reader(kmsg_trust::kernel, true);
    kernel_parser parser;
    event_queue queue;
    engine incidents;
    std::size_t before = 0;
    const auto begun = bench::thread_ms();
    const auto flush = [&] {
        const auto some = queue.front(256);
        for (const auto& e : some) (void)incidents.absorb(e, e.line_ms);
        queue.confirm(some.size());
    };
    for (std::uint64_t n = 0; n < lines; ++n) {
        if (n == 1000) before = resident_kib();
        reader.read(line, [&](std::string_view text) {
            auto found = parser.line(text);
            if (!found.fault) return;
            event e;
            e.node = "n03";
            e.boot_id = "boot";
            e.stream = "s";
            e.position = n;
            e.line_ms = 1'000'000 + static_cast<std::int64_t>(n) / 20;  // within 40 s
            e.text = text;
            e.fault = std::move(*found.fault);
            (void)queue.push(std::move(e));
        });
        if (n % 256 == 0) flush();
    }
    queue.flush_repeats(INT64_MAX);
    flush();
    const auto grown = resident_kib() - std::min(before, resident_kib());
    std::uint64_t counted = 0;
    for (const auto& [number, i] : incidents.all()) counted += i.lines;
    const auto what = fmt::format("{} equal lines", lines);
    out.add("incidents of a storm", static_cast<double>(incidents.all().size()), "incidents", what, "<=", 1);
    out.add("lines of it that are not counted", static_cast<double>(lines - std::min(lines, counted)),
            "lines", what, "<=", 0);
    out.add("memory that it takes", static_cast<double>(grown), "KiB", what, "<=", 1024);
    out.add("a storm's lines, from record to incident",
            static_cast<double>(lines) / (bench::thread_ms() - begun) * 1000, "lines/s", "one core");
}

}  // namespace

int main(int argc, char** argv) {
    std::string json;
    std::size_t agents = 512;
    int seconds = 10;
    CLI::App app{"faultd_bench: the fault daemons at work"};
    app.add_option("--json", json, "write the figures there");
    app.add_option("--agents", agents, "light agents");
    app.add_option("--seconds", seconds, "how long they send");
    CLI11_PARSE(app, argc, argv);
    spdlog::set_level(spdlog::level::off);
    try {
        bench::figures out;
        const scratch s;
        const auto lines = line_to_event(s, 2000);
        out.add("line to event, p99", percentile(lines, 0.99), "ms", fmt::format("{} lines", lines.size()),
                "<=", 5);
        measure_storm(out);
        measure_controller(s, out, agents, seconds);
        return out.finish(json);
    } catch (const std::exception& e) {
        fmt::print(stderr, "faultd_bench: {}\n", e.what());
        return 1;
    }
}
