// SPDX-License-Identifier: BSD-3-Clause
#include "common/child.hpp"

#include <array>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace banyan {
namespace {

/// What posix_spawn is to do in the child, released at the end of the scope.
class spawn_plan {
  public:
    explicit spawn_plan(const child_setup& setup) {
        ::posix_spawn_file_actions_init(&files_);
        ::posix_spawnattr_init(&attributes_);
        const int wanted[] = {setup.in, setup.out, setup.err};
        for (int number = 0; number < 3; ++number)
            if (wanted[number] >= 0) ::posix_spawn_file_actions_adddup2(&files_, wanted[number], number);
        // Asio opens its sockets without close-on-exec: a child that outlives a killed daemon would keep the
        // daemon's port, and the next one could not listen.
        ::posix_spawn_file_actions_addclosefrom_np(&files_, STDERR_FILENO + 1);
        sigset_t none;
        sigemptyset(&none);
        ::posix_spawnattr_setsigmask(&attributes_, setup.blocked ? &*setup.blocked : &none);
        // A daemon ignores it, and a child that went on so would write for nobody until it is killed.
        sigset_t pipe;
        sigemptyset(&pipe);
        sigaddset(&pipe, SIGPIPE);
        ::posix_spawnattr_setsigdefault(&attributes_, &pipe);
        ::posix_spawnattr_setpgroup(&attributes_, 0);
        const int flags =
            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (setup.own_group ? POSIX_SPAWN_SETPGROUP : 0);
        ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
    }
    ~spawn_plan() {
        ::posix_spawn_file_actions_destroy(&files_);
        ::posix_spawnattr_destroy(&attributes_);
    }
    spawn_plan(const spawn_plan&) = delete;
    spawn_plan& operator=(const spawn_plan&) = delete;

    /// 0 or an errno.
    int run(char* const* words, pid_t& pid) const {
        return ::posix_spawnp(&pid, words[0], &files_, &attributes_, words, environ);
    }

  private:
    posix_spawn_file_actions_t files_{};
    posix_spawnattr_t attributes_{};
};

child_end reap(pid_t pid) {
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) return {127, 0};  // somebody else has reaped it: nothing is known of its end
    if (WIFEXITED(status)) return {WEXITSTATUS(status), 0};
    return {128 + WTERMSIG(status), WTERMSIG(status)};
}

}  // namespace

result<child> child::start(const std::vector<std::string>& words, const child_setup& setup) {
    std::vector<char*> pointers;
    for (const auto& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    pid_t pid = -1;
    if (const int why = spawn_plan(setup).run(pointers.data(), pid); why != 0)
        return fail_errno("cannot run " + words.front(), why);
    // Nobody else reaps it, so its number is still its own.
    unique_fd end(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!end) {
        const int why = errno;
        ::kill(pid, SIGKILL);
        reap(pid);
        return fail_errno("cannot watch " + words.front(), why,
                          "Linux 5.3 or newer is needed, and a free descriptor");
    }
    return child(pid, std::move(end));
}

child::child(child&& other) noexcept : pid_(std::exchange(other.pid_, -1)), end_(std::move(other.end_)) {}

child::~child() {
    if (pid_ < 0) return;
    ::kill(pid_, SIGKILL);
    reap(pid_);
}

bool child::ends_by(clock::time_point until) const {
    for (;;) {
        pollfd end{end_.get(), POLLIN, 0};
        const int left = clock::poll_ms(until);
        if (::poll(&end, 1, left) > 0) return true;
        if (left == 0) return false;
    }
}

void child::send(int signal) const {
    if (pid_ > 0) ::kill(pid_, signal);
}

child_end child::wait() { return reap(std::exchange(pid_, -1)); }

result<child_end> run_forked(const std::function<int()>& work) {
    const pid_t pid = ::fork();
    if (pid < 0) return fail_errno("cannot fork", errno);
    if (pid == 0) ::_exit(work());
    return reap(pid);
}

result<std::string> ask_forked(const std::function<std::string()>& work, clock::time_point until) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno("no pipe", errno);
    unique_fd from(ends[0]), to(ends[1]);
    const pid_t self = ::getpid(), pid = ::fork();
    if (pid < 0) return fail_errno("cannot fork", errno);
    if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (::getppid() != self) ::_exit(1);
        const auto said = work();
        for (std::size_t at = 0; at < said.size();) {
            const auto wrote = ::write(to.get(), said.data() + at, said.size() - at);
            if (wrote < 0 && errno != EINTR) ::_exit(1);
            if (wrote > 0) at += static_cast<std::size_t>(wrote);
        }
        ::_exit(0);
    }
    to.reset();
    std::string said;
    std::array<char, 4096> some{};
    bool whole = false;
    for (pollfd ready{from.get(), POLLIN, 0}; !whole;) {
        const int left = clock::poll_ms(until);
        const int came = ::poll(&ready, 1, left);
        if (came < 0 ? errno == EINTR : came == 0 && left > 0) continue;
        if (came <= 0) break;
        const auto got = ::read(from.get(), some.data(), some.size());
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) break;
        whole = got == 0;
        said.append(some.data(), static_cast<std::size_t>(got));
    }
    if (!whole) ::kill(pid, SIGKILL);
    const auto end = reap(pid);
    if (!whole) return fail(errc::unavailable, "no answer in time");
    if (end.code != 0) return fail(errc::unavailable, fmt::format("asking ended with code {}", end.code));
    return said;
}

}  // namespace banyan
