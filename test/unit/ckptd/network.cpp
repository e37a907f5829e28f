// SPDX-License-Identifier: BSD-3-Clause
#include "network.hpp"

#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ckptd_test {
namespace {

constexpr auto nowhere = "02:00:00:00:00:01";  // an address that no port of the bridge has

pid_t hold_namespace() {
    int ready[2];
    if (::pipe(ready) != 0) throw std::runtime_error("no pipe");
    const pid_t child = ::fork();
    if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        const char made = ::unshare(CLONE_NEWNET) == 0 ? 1 : 0;
        if (::write(ready[1], &made, 1) != 1 || made == 0) ::_exit(1);
        for (;;) ::pause();
    }
    char made = 0;
    const bool heard = ::read(ready[0], &made, 1) == 1;
    ::close(ready[0]);
    ::close(ready[1]);
    if (!heard || made == 0) throw std::runtime_error("no network namespace: is this root?");
    return child;
}

void ip(pid_t in, const std::string& words) {
    const auto command = "nsenter -t " + std::to_string(in) + " -n ip " + words;
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command + " failed");
}

std::string port(int node) { return "port" + std::to_string(node); }

}  // namespace

network::network(int nodes) {
    for (int i = 0; i <= nodes; ++i) holders_.push_back(hold_namespace());
    const auto middle = holders_[0];
    ip(middle, "link add middle type bridge forward_delay 0");
    ip(middle, "link set middle up");
    for (int node = 1; node <= nodes; ++node) {
        const auto own = holders_[static_cast<std::size_t>(node)];
        ip(middle, "link add " + port(node) + " type veth peer name eth0 netns " + std::to_string(own));
        ip(middle, "link set " + port(node) + " master middle up");
        ip(own, "addr add " + addr(node) + "/24 dev eth0");
        ip(own, "link set lo up");
        ip(own, "link set eth0 up");
    }
}

network::~network() {
    for (const auto pid : holders_) {
        ::kill(pid, SIGKILL);
        ::waitpid(pid, nullptr, 0);
    }
}

std::vector<std::string> network::enter(int node) const {
    return {"nsenter", "-t", std::to_string(holders_[static_cast<std::size_t>(node)]), "-n", "--"};
}

void network::cut(int node) { ip(holders_[0], "link set " + port(node) + " nomaster"); }

void network::heal(int node) { ip(holders_[0], "link set " + port(node) + " master middle"); }

void network::cut(int from, int to) {
    ip(holders_[static_cast<std::size_t>(from)],
       "neigh replace " + addr(to) + " lladdr " + nowhere + " dev eth0 nud permanent");
}

void network::heal(int from, int to) {
    ip(holders_[static_cast<std::size_t>(from)], "neigh del " + addr(to) + " dev eth0");
}

}  // namespace ckptd_test
