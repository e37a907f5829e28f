// SPDX-License-Identifier: GPL-2.0-or-later
//
// The life of the plugin's thread, with locks that are nobody's.
#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>
#include <pthread.h>

#include "slurmctld-plugin/bell/bell.hpp"

namespace test_bell {

using banyan::slurm::bell;

namespace {

/// The locks, and what is to be done under them. Shared with the threads, which may outlive their bell.
struct locked : std::enable_shared_from_this<locked> {
    std::mutex locks;
    std::counting_semaphore<> asked{0}, given_back{0}, looked{0};
    std::atomic<int> looks = 0;
    std::function<bool()> look = [] { return false; };

    bell::work work() {
        const auto self = shared_from_this();
        return {[self] {
                    self->asked.release();
                    self->locks.lock();
                },
                [self] {
                    self->locks.unlock();
                    self->given_back.release();
                },
                [self] {
                    ++self->looks;
                    self->looked.release();
                    return self->look();
                }};
    }
};

bool is_blocked(int number) {
    sigset_t blocked;
    pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
    return sigismember(&blocked, number) == 1;
}

}  // namespace

TEST_CASE("a bell looks when it is rung, and while something is left", "[slurmctld]") {
    const auto shared = std::make_shared<locked>();
    auto& ctld = *shared;
    ctld.look = [&] { return ctld.looks < 3; };
    bell tested(ctld.work());
    tested.ring();
    for (int i = 0; i < 3; ++i) ctld.looked.acquire();
    ctld.given_back.acquire();
    tested.ring();
    ctld.looked.acquire();
    tested.still();
    CHECK(ctld.looks == 4);
}

TEST_CASE("signals are for others than the bell's thread", "[slurmctld]") {
    const auto shared = std::make_shared<locked>();
    auto& ctld = *shared;
    std::atomic<bool> blocked = false;
    ctld.look = [&] {
        blocked = is_blocked(SIGTERM) && is_blocked(SIGHUP) && is_blocked(SIGUSR2);
        return false;
    };
    bell tested(ctld.work());
    tested.ring();
    ctld.given_back.acquire();
    CHECK(blocked);
    CHECK_FALSE(is_blocked(SIGTERM));
}

TEST_CASE("a bell is stilled by who has the locks, and rings again in its next life", "[slurmctld]") {
    const auto shared = std::make_shared<locked>();
    auto& ctld = *shared;
    bell tested(ctld.work());
    ctld.locks.lock();
    tested.ring();
    ctld.asked.acquire();  // the thread waits for the locks
    tested.still();
    tested.ring();  // a second one
    ctld.asked.acquire();
    tested.still();
    tested.ring();
    ctld.asked.acquire();
    ctld.locks.unlock();
    for (int i = 0; i < 3; ++i) ctld.given_back.acquire();
    CHECK(ctld.looks == 1);  // of the last life alone
}

TEST_CASE("who stills a bell waits for a look under way", "[slurmctld]") {
    const auto shared = std::make_shared<locked>();
    auto& ctld = *shared;
    std::binary_semaphore go_on{0};
    std::atomic<bool> through = false;
    ctld.look = [&] {
        go_on.acquire();
        through = true;
        return true;
    };
    bell tested(ctld.work());
    tested.ring();
    ctld.looked.acquire();
    std::atomic<bool> was_through = false;
    std::thread stills([&] {
        go_on.release();
        tested.still();
        was_through = through.load();
    });
    stills.join();
    CHECK(was_through);
    CHECK(ctld.looks == 1);
    ctld.given_back.acquire();
}

TEST_CASE("an exception ends one look, and not the bell", "[slurmctld]") {
    const auto shared = std::make_shared<locked>();
    auto& ctld = *shared;
    ctld.look = [&]() -> bool {
        if (ctld.looks == 1) throw std::runtime_error("out of luck");
        return false;
    };
    bell tested(ctld.work());
    tested.ring();
    ctld.given_back.acquire();
    tested.ring();
    ctld.given_back.acquire();
    CHECK(ctld.looks == 2);
}

TEST_CASE("many ring at once", "[slurmctld]") {
    const auto shared = std::make_shared<locked>();
    auto& ctld = *shared;
    bell tested(ctld.work());
    std::vector<std::thread> ringers;
    for (int i = 0; i < 8; ++i)
        ringers.emplace_back([&] {
            for (int j = 0; j < 200; ++j) tested.ring();
        });
    for (auto& one : ringers) one.join();
    ctld.given_back.acquire();
    tested.still();
    CHECK(ctld.looks >= 1);
    CHECK(ctld.looks <= 1600);
}

}  // namespace test_bell
