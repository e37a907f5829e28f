// SPDX-License-Identifier: BSD-3-Clause
#include "test/idle_clock.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/fd.hpp"

namespace banyan::testing {
namespace {

using namespace std::chrono_literals;

constexpr auto step = 10ms;
/// Of the kernel's time: by then whoever follows held time has looked at it again.
constexpr auto look_every = 1200us;
/// Of the kernel's time: where somebody works without end, time goes on all the same, and slowly.
constexpr auto longest_still = 100ms;

constexpr auto look_again = 5ms;
constexpr auto broken_after = 60s;  // of the kernel's time

std::string content(const std::string& path) {
    std::string out(4096, '\0');
    const unique_fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    const auto n = file ? ::read(file.get(), out.data(), out.size()) : -1;
    out.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return out;
}

std::vector<std::string> tasks_of(pid_t pid) {
    const auto folder = "/proc/" + std::to_string(pid) + "/task";
    std::vector<std::string> out;
    DIR* const all = ::opendir(folder.c_str());
    if (!all) return out;
    while (const auto* one = ::readdir(all))
        if (one->d_name[0] != '.') out.push_back(folder + "/" + one->d_name);
    ::closedir(all);
    return out;
}

/// Whether somebody waits for a processor nearly all the time: then so do the kernel's own threads, which
/// finish what others began, and are not seen here.
class pressure {
  public:
    bool is_high(std::chrono::steady_clock::time_point now) {
        if (now < read_ + 20ms) return high_;
        const auto text = content("/proc/pressure/cpu");
        const auto at = text.find("total=");
        const std::chrono::microseconds waited(at == text.npos ? 0 : std::atoll(text.c_str() + at + 6));
        high_ = at == text.npos || 2 * (waited - waited_) > now - read_;
        read_ = now;
        waited_ = waited;
        return high_;
    }

  private:
    std::chrono::steady_clock::time_point read_{};
    std::chrono::microseconds waited_{0};
    bool high_ = true;
};

/// Runs, waits for a processor, or for a disk.
bool is_at_work(const std::string& task) {
    const auto stat = content(task + "/stat");
    const auto name = stat.rfind(')');  // which may hold anything
    if (name == stat.npos || name + 2 >= stat.size()) return false;
    return stat[name + 2] == 'R' || stat[name + 2] == 'D';
}

}  // namespace

idle_clock::idle_clock(const std::string& path) : held_(path) {
    ::setenv("BANYAN_CLOCK", path.c_str(), 1);
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);  // signals are the test's
    runs_ = std::thread([this] { run(); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

idle_clock::~idle_clock() {
    over_ = true;
    runs_.join();
    ::unsetenv("BANYAN_CLOCK");
}

void idle_clock::ignore(pid_t pid) {
    const std::scoped_lock held(lock_);
    ignored_.insert(pid);
}

void idle_clock::run() {
    auto moved = std::chrono::steady_clock::now();
    pressure processors;
    while (!over_) {
        std::this_thread::sleep_for(look_every);
        const auto now = std::chrono::steady_clock::now();
        // Where processors are short no faster than the kernel's time.
        if (processors.is_high(now) && now < moved + step) continue;
        // Twice: one that was asleep when it was looked at may have been woken by one that was not yet.
        if (now < moved + longest_still && !(all_sleep() && all_sleep())) continue;
        held_.advance(step);
        moved = now;
    }
}

bool idle_clock::all_sleep() {
    const auto self = ::getpid();
    const auto own = "/" + std::to_string(::gettid());
    std::set<pid_t> ignored;
    {
        const std::scoped_lock held(lock_);
        ignored = ignored_;
    }
    std::vector<pid_t> to_see(known_.begin(), known_.end());
    to_see.push_back(self);
    bool asleep = true;
    while (!to_see.empty()) {
        const auto pid = to_see.back();
        to_see.pop_back();
        const auto tasks = tasks_of(pid);
        if (tasks.empty()) known_.erase(pid);
        for (const auto& task : tasks) {
            if (pid == self && task.ends_with(own)) continue;
            if (asleep && !ignored.contains(pid)) asleep = !is_at_work(task);
            const auto children = content(task + "/children");
            const char* at = children.c_str();
            for (char* end = nullptr;; at = end) {
                const auto child = static_cast<pid_t>(std::strtol(at, &end, 10));
                if (end == at) break;
                if (known_.insert(child).second) to_see.push_back(child);
            }
        }
    }
    return asleep;
}

bool eventually(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + broken_after;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= until) return false;
        clock::sleep_for(look_again);
    }
    return true;
}

bool within(clock::duration time, const std::function<bool()>& done) {
    const auto until = clock::now() + time;
    while (!done()) {
        if (clock::now() >= until) return false;
        clock::sleep_for(look_again);
    }
    return true;
}

}  // namespace banyan::testing
