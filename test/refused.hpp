// SPDX-License-Identifier: BSD-3-Clause
//
// What a mock says that ends whoever breaks a rule of the real library.
#pragma once

#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace banyan::testing {

/// `work` in a child process: what it has said before it was ended; "" where it was not.
inline std::string refused(const std::function<void()>& work) {
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0) return {};
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGABRT, SIG_DFL);
        ::dup2(ends[1], STDERR_FILENO);
        work();
        ::_exit(0);
    }
    ::close(ends[1]);
    std::string said;
    char some[4096];
    for (ssize_t n = 0; (n = ::read(ends[0], some, sizeof some)) > 0;)
        said.append(some, static_cast<std::size_t>(n));
    ::close(ends[0]);
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT ? said : std::string();
}

}  // namespace banyan::testing
