// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-ckptd: options, settings, log, run.
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <unistd.h>

#include "ckptd/buffers/guard.hpp"
#include "ckptd/daemon/daemon.hpp"
#include "ckptd/daemon/library_copy.hpp"
#include "common/build_info.hpp"
#include "common/clock.hpp"
#include "common/config.hpp"
#include "common/hangup.hpp"
#include "common/limits.hpp"
#include "common/log_file.hpp"

namespace {

struct options {
    std::string config, node, bind, log;
    bool check = false, dump = false, exit_when_idle = false, detach = false, kept = false;
};

int complain(const banyan::error& e, const std::string& log) {
    banyan::say_fatal("banyan-ckptd", log, e.text());
    return e.code == banyan::errc::invalid_input ? 2 : 1;
}

// Whoever started us reads standard error to its end: what stands there is why there is no daemon, and
// nothing that there is one.
void let_go_of_stderr() {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDERR_FILENO);
    if (null > STDERR_FILENO) ::close(null);
}

// A node with hundreds of ranks has hundreds of connections and memfds.
constexpr std::size_t files_needed = 4096;

// Becomes the keeper, which runs this program again, below it. Returns only when that is impossible.
std::string exec_keeper(int argc, char** argv) {
    std::error_code ec;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", ec);
    if (ec) return "cannot find its own program: " + ec.message();
    auto keeper = (self.parent_path() / "banyan-ckpt-keeper").string();
    auto own = self.string();
    std::vector<char*> words{keeper.data(), own.data()};
    words.insert(words.end(), argv + 1, argv + argc);
    words.push_back(nullptr);
    ::execv(keeper.c_str(), words.data());
    return "cannot run " + keeper + ": " + std::strerror(errno);
}

int run(const banyan::ckpt::settings& settings, const options& o,
        std::shared_ptr<banyan::ckpt::keeper::custody> keeper) {
    if (auto log = banyan::setup_log("banyan-ckptd", o.log, settings.log_level); !log)
        return complain(log.error(), "");
    ::signal(SIGPIPE, SIG_IGN);
    banyan::ckpt::guard_from_missing_pages();
    if (const auto files = banyan::raise_descriptor_limit(files_needed); !files)
        spdlog::warn("{}", files.error().text());
    boost::asio::io_context io(1);
    banyan::hangup hangup(io);
    banyan::ckpt::daemon daemon(io, settings, keeper);
    if (auto opened = daemon.open(); !opened) return complain(opened.error(), "");
    banyan::ckpt::put_library_beside(settings.socket, banyan::checkpoint_library);
    if (o.detach) let_go_of_stderr();
    keeper->ready(o.detach);
    io.run();
    // Workers may sit in storage that never answers: the process ends without them.
    std::fflush(nullptr);
    std::_Exit(0);
}

}  // namespace

int main(int argc, char** argv) {
    banyan::ignore_hangup();
    options o;
    CLI::App app(
        "Keeps the newest training state of this node's ranks in memory, on a second node and in storage.");
    app.add_option("--config", o.config, "banyan.conf (default: $BANYAN_CONF, /etc/banyan/banyan.conf)");
    app.add_option("--node", o.node, "name of this node (default: short host name)");
    app.add_option("--bind", o.bind, "address for other nodes' daemons (default: bind in [ckptd])");
    app.add_option("--log", o.log, "log file (default: standard error)");
    app.add_flag("--exit-when-idle", o.exit_when_idle, "end when the last session is over");
    app.add_flag("--detach", o.detach, "let go of standard error once the daemon answers");
    app.add_flag("--keeper", o.kept,
                 "let a second process hold the memory, so that it outlives a crash or an upgrade");
    app.add_flag("--check-config", o.check, "read the configuration, say whether it is right, end");
    app.add_flag("--dump-config", o.dump, "print every value in force, end");
    app.set_version_flag("-V,--version", banyan::version_line("banyan-ckptd"));
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        if (e.get_exit_code() == 0) return app.exit(e);
        banyan::say_fatal("banyan-ckptd", banyan::log_option(argc, argv),
                          std::string(e.what()) + "; run banyan-ckptd --help");
        return 2;
    }
    if (const auto followed = banyan::clock::follow_environment(); !followed)
        return complain(followed.error(), o.log);
    const std::filesystem::path config =
        o.config.empty() ? banyan::default_config_path() : std::filesystem::path(o.config);
    auto settings = banyan::ckpt::load_settings(config, o.node);
    if (!settings) return complain(settings.error(), o.check || o.dump ? "" : o.log);
    if (!o.bind.empty()) settings->bind = o.bind;
    settings->exit_when_idle = o.exit_when_idle;
    if (o.dump) std::fputs(banyan::ckpt::dump_settings(*settings).c_str(), stdout);
    if (o.check) {
        const auto notes = banyan::check_config(config);
        if (!notes) return complain(notes.error(), "");
        if (!o.dump)
            for (const auto& note : *notes) std::puts(note.c_str());
        if (!o.dump) std::puts("the configuration is right");
    }
    if (o.dump || o.check) return 0;
    auto keeper = banyan::ckpt::keeper::custody::from_environment();
    if (o.kept && !keeper->is_kept()) {
        // Better alone than not at all.
        const auto why = exec_keeper(argc, argv);
        banyan::say_fatal("banyan-ckptd", o.log, why + "; its memory ends with it");
    }
    return run(*settings, o, std::move(keeper));
}
