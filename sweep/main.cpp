// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-sweep: is this node fit to train?
//
// Exit codes: 0 fit; 1 unfit; 2 wrong use or configuration; 3 something could not be looked at; 4 Slurm or
// the file for metrics could not be told.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "common/cli_words.hpp"
#include "common/config.hpp"
#include "common/file.hpp"
#include "common/json_fields.hpp"
#include "sweep/apart.hpp"
#include "sweep/drain.hpp"
#include "sweep/print.hpp"
#include "sweep/run.hpp"
#include "sweep/topology.hpp"

namespace {

using namespace banyan;
using namespace banyan::sweep;
using steady = banyan::clock;

constexpr int wrong_use = 2, not_told = 4;

struct arguments {
    std::string config = default_config_path().string();
    std::string node{}, textfile{}, baseline{}, root = "/";
    std::vector<std::string> only{};
    unsigned jitter = 0, time_limit = 30;
    bool json = false, drain = false, even_if_busy = false;
};

std::string own_name() {
    if (const char* named = std::getenv("SLURMD_NODENAME"); named && *named) return named;
    std::array<char, 256> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0) return "localhost";
    const std::string text(name.data());
    return text.substr(0, text.find('.'));
}

void say(const error& e) { fmt::print(stderr, "banyan-sweep: {}\n", e.text()); }

/// An error, or a text, as it comes back from a child process.
look telling(std::function<result<std::string>()> work) {
    return [work = std::move(work)] {
        const auto done = work();
        return done ? nlohmann::json{{"told", *done}} : nlohmann::json{{"error", done.error().text()}};
    };
}

result<std::string> told_by(const result<nlohmann::json>& answer) {
    if (!answer) return std::unexpected(answer.error());
    const json_fields fields(*answer);
    if (fields.has("told")) return fields.text("told");
    BANYAN_TRY(auto why, fields.text("error"));
    return fail(errc::unavailable, std::move(why));
}

void wait_a_while(unsigned most) {
    if (most == 0) return;
    std::random_device dice;
    std::uniform_int_distribution<unsigned> ms(0, most * 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(ms(dice)));
}

/// Half of the time is for the looks, a quarter each for what is measured and for telling; what is not asked
/// for gives its share to the others.
sweep_options divided(const arguments& a, std::vector<check> checks) {
    const bool measures = std::ranges::any_of(checks, &check::alone);
    const bool tells = a.drain || !a.textfile.empty();
    const auto share = std::chrono::duration_cast<steady::duration>(std::chrono::seconds(a.time_limit)) /
                       (2 + (measures ? 1 : 0) + (tells ? 1 : 0));
    sweep_options out;
    out.checks = std::move(checks);
    out.even_if_busy = a.even_if_busy;
    out.looking = 2 * share;
    out.measuring = share;
    out.where.root = a.root;
    out.where.measure_for = std::min<steady::duration>(share / 3, std::chrono::seconds(1));
    return out;
}

/// Tells Slurm and node_exporter; false where one of them could not be told.
bool tell(const arguments& a, const report& found, told& t, deadline until) {
    std::vector<look> all;
    if (a.drain)
        all.push_back(
            telling([&] { return settle(*fault::make_slurm_cluster(), t.node, found, a.only.empty()); }));
    if (!a.textfile.empty())
        all.push_back(telling([&]() -> result<std::string> {
            BANYAN_CHECK(write_file_atomic(a.textfile, as_metrics(found, std::time(nullptr))));
            return "written";
        }));
    const auto answers = look_apart(all, until);
    bool good = true;
    if (a.drain) {
        const auto slurm = told_by(answers.front());
        t.slurm = slurm ? *slurm : slurm.error().text();
        t.slurm_failed = !slurm;
        good = slurm.has_value();
    }
    if (a.textfile.empty()) return good;
    const auto written = told_by(answers.back());
    if (!written) say(written.error());
    return good && written;
}

/// The last resort, where even our own file or our own output hangs: the kernel ends us with SIGALRM, which
/// no handler of ours could do in the middle of a read that does not return.
void end_at_the_latest_after(unsigned seconds) { ::alarm(seconds + 2); }

/// Of this machine as it is, within the time limit.
int write_topology(const arguments& a) {
    end_at_the_latest_after(a.time_limit);
    const auto answer = look_apart(telling([&]() -> result<std::string> {
                                       std::string xml;
                                       BANYAN_CHECK(look_at_machine(&xml));
                                       BANYAN_CHECK(write_file_atomic(a.baseline, xml));
                                       return "written";
                                   }),
                                   steady::now() + std::chrono::seconds(a.time_limit));
    const auto done = told_by(answer);
    if (done) return 0;
    say(done.error());
    return 3;
}

int run(const arguments& a) {
    end_at_the_latest_after(a.jitter + a.time_limit);
    told t;
    t.node = a.node.empty() ? own_name() : a.node;
    const auto asked = load_settings(a.config, t.node);
    auto checks = asked ? choose(*asked, a.only) : std::unexpected(asked.error());
    if (!checks) {
        say(checks.error());
        return wrong_use;
    }
    wait_a_while(a.jitter);
    end_at_the_latest_after(a.time_limit);
    const auto begin = steady::now();
    auto options = divided(a, std::move(*checks));
    options.where.asked = *asked;
    const auto found = sweep_node(options, [&]() -> result<bool> {
        BANYAN_TRY(const auto node, fault::make_slurm_cluster()->node(t.node));
        return node.busy;
    });
    const bool good = tell(a, found, t, begin + std::chrono::seconds(a.time_limit));
    t.seconds = std::chrono::duration<double>(steady::now() - begin).count();
    fmt::print("{}", a.json ? as_json_text(found, t) : as_table(found, t));
    return good ? exit_code(found) : not_told;
}

/// Where whoever started us left one of the three closed, a file of ours must not take its number.
void open_the_standard_three() {
    int fd = ::open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO) fd = ::open("/dev/null", O_RDWR);
    if (fd >= 0) ::close(fd);
}

void add_options(CLI::App& app, arguments& a) {
    app.add_option("--config", a.config, "banyan.conf (default: $BANYAN_CONF, else /etc/banyan/banyan.conf)");
    app.add_option("--node", a.node,
                   "the node's name in Slurm (default: $SLURMD_NODENAME, else the host name)");
    app.add_option("--only", a.only, "these checks and no others, with commas between them")->delimiter(',');
    app.add_flag("--even-if-busy", a.even_if_busy,
                 "also what takes the node's time, or says little, while a job has the node");
    app.add_flag(
        "--drain", a.drain,
        "drain the node in Slurm when it is unfit; return it when all is well and the sweep drained it");
    app.add_option("--textfile", a.textfile, "a file for node_exporter's textfile collector");
    app.add_flag("--json", a.json, "one JSON object");
    app.add_option("--jitter", a.jitter, "first wait for a random time up to so many SECONDS")
        ->check(CLI::Range(0, 3600));
    app.add_option(
           "--time-limit", a.time_limit,
           "how many SECONDS all may take after that wait; what has not answered then was not looked at")
        ->check(CLI::Range(1, 3600))
        ->capture_default_str();
    app.add_option("--write-topology", a.baseline,
                   "look at nothing; write what hwloc sees of this node to a file, for topology in [sweep]");
    app.add_option("--root", a.root)->group("");  // for tests: where proc/ and sys/ are
}

}  // namespace

int main(int argc, char** argv) {
    open_the_standard_three();
    CLI::App app("Looks over this node and says whether it is fit to train, by [sweep] of banyan.conf.");
    usual_words(app, "banyan-sweep");
    arguments a;
    add_options(app, a);
    app.footer(
        "Exit codes: 0 fit, 1 unfit, 2 wrong use or configuration, 3 something could not be looked at,\n"
        "4 Slurm or the text file could not be told.");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        return app.exit(e) == 0 ? 0 : wrong_use;
    }
    if (a.baseline.empty()) return run(a);
    if (a.drain || a.json || a.even_if_busy || !a.only.empty() || !a.textfile.empty()) {
        say({errc::invalid_input, "--write-topology looks at nothing", "it goes with --time-limit alone"});
        return wrong_use;
    }
    return write_topology(a);
}
