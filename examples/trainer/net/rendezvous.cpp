// SPDX-License-Identifier: BSD-3-Clause
//
// The registration at rank 0. Numbers travel as they lie in memory: all ranks run the same program on the
// same kind of machine.
#include "examples/trainer/net/rendezvous.hpp"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>

#include "examples/trainer/failure.hpp"
#include "examples/trainer/hash.hpp"

namespace trainer {
namespace {

struct hello {
    std::uint64_t magic = 0x31676e696e696174U;
    std::uint64_t run = 0, task = 0, step = 0;
    std::uint32_t rank = 0, world = 0, port = 0;
    coordinates place, sizes;
};

struct entry {
    in_addr address{};
    std::uint32_t port = 0;
    coordinates place;
};

/// Before the table: empty = welcome, else why not.
struct verdict {
    char refusal[248] = {};
    std::uint32_t entries = 0, spare = 0;
};

template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}
template <class T>
std::span<std::byte> room_of(T& value) {
    return std::as_writable_bytes(std::span(&value, 1));
}

std::uint64_t hash_of(const std::string& text) {
    std::uint64_t out = 0;
    for (const char c : text) out = mix(out ^ static_cast<unsigned char>(c));
    return out;
}

hello hello_of(const settings& conf, int listener, std::uint64_t step) {
    hello out;
    out.run = hash_of(conf.self.run);
    out.task = conf.work.digest();
    out.step = step;
    out.rank = conf.self.rank;
    out.world = conf.self.world;
    out.port = port_of(listener);
    out.place = conf.self.place;
    out.sizes = conf.self.sizes;
    return out;
}

/// Why the rank cannot take part; empty when it can.
std::string objection(const hello& mine, const hello& theirs, const std::vector<entry>& taken) {
    const auto who = "rank " + std::to_string(theirs.rank);
    if (theirs.world != mine.world || theirs.rank == 0 || theirs.rank >= mine.world)
        return who + " of " + std::to_string(theirs.world) + " does not belong to " +
               std::to_string(mine.world) + " ranks";
    if (taken[theirs.rank].port != 0) return who + " is registered twice";
    if (theirs.task != mine.task) return who + " was started with other flags than rank 0";
    if (theirs.sizes != mine.sizes) return who + " has another BANYAN_SHAPE than rank 0";
    if (theirs.step != mine.step)
        return who + " stands at step " + std::to_string(theirs.step) + ", rank 0 at step " +
               std::to_string(mine.step);
    return {};
}

/// Waits for a connection, and meanwhile for one of those already here to go.
void wait_for_next(int listener, const std::vector<stream>& here, clock::time_point until) {
    std::vector<pollfd> waits{{listener, POLLIN, 0}};
    for (const auto& peer : here) waits.push_back({peer ? peer.fd() : -1, POLLIN, 0});
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - clock::now()).count();
    const int ready = ::poll(waits.data(), waits.size(), static_cast<int>(std::max<long>(left, 0)));
    if (ready < 0 && errno != EINTR) throw failure_errno("cannot wait for the ranks", errno);
    for (std::size_t i = 1; i < waits.size(); ++i)
        if (waits[i].fd >= 0 && waits[i].revents != 0) {
            std::byte none{};
            if (::recv(waits[i].fd, &none, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
                throw failure("lost rank " + std::to_string(i - 1) + " while the ranks were gathering");
        }
    if (ready == 0) {
        std::string missing;
        for (std::size_t rank = 1; rank < here.size() && missing.size() < 80; ++rank)
            if (!here[rank]) missing += (missing.empty() ? "" : ", ") + std::to_string(rank);
        throw failure("these ranks did not come in time: " + missing);
    }
}

table table_of(const std::vector<entry>& entries, const coordinates& sizes) {
    table out;
    for (const auto& e : entries) {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr = e.address;
        at.sin_port = htons(static_cast<std::uint16_t>(e.port));
        out.addresses.push_back(at);
        out.places.push_back(e.place);
    }
    check_places(out.places, sizes);
    return out;
}

void refuse(stream& peer, const std::string& why) {
    verdict no;
    std::strncpy(no.refusal, why.c_str(), sizeof no.refusal - 1);
    peer.send(bytes_of(no));
}

/// Takes one connection; a stranger (another job on this port, a rank of an earlier step) is dropped.
void register_one(const hello& mine, banyan::unique_fd fd, std::vector<entry>& entries,
                  std::vector<stream>& here, std::uint32_t& count) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    ::getpeername(fd.get(), reinterpret_cast<sockaddr*>(&from), &size);
    stream peer(std::move(fd), "a rank that registers", std::chrono::seconds(2));
    hello theirs;
    try {
        peer.receive(room_of(theirs));
    } catch (const failure&) {
        return;
    }
    if (theirs.magic != mine.magic) return;
    if (theirs.run != mine.run) return refuse(peer, "rank 0 on this port belongs to another job step");
    if (const auto why = objection(mine, theirs, entries); !why.empty()) {
        refuse(peer, why);
        throw failure(why);
    }
    entries[theirs.rank] = {from.sin_addr, theirs.port, theirs.place};
    here[theirs.rank] = std::move(peer);
    ++count;
}

table gather(const settings& conf, const hello& mine, clock::time_point until) {
    const auto address = resolve(conf.self.master_addr);
    const auto listener = listen_on(is_local(address) ? address : in_addr{}, conf.self.master_port,
                                    std::min(until, clock::now() + std::chrono::seconds(5)));
    std::vector<entry> entries(mine.world);
    std::vector<stream> here(mine.world);
    entries[0] = {address, mine.port, mine.place};
    for (std::uint32_t count = 1; count < mine.world;) {
        wait_for_next(listener.get(), here, until);
        register_one(mine, accept_one(listener.get(), until, "the other ranks"), entries, here, count);
    }
    const verdict yes{{}, mine.world, 0};
    for (std::uint32_t rank = 1; rank < mine.world; ++rank) {
        here[rank].name("rank " + std::to_string(rank));
        here[rank].send(bytes_of(yes));
        here[rank].send(std::as_bytes(std::span(entries)));
    }
    return table_of(entries, mine.sizes);
}

table enrol(const settings& conf, const hello& mine, clock::time_point until) {
    sockaddr_in master{};
    master.sin_family = AF_INET;
    master.sin_addr = resolve(conf.self.master_addr);
    master.sin_port = htons(conf.self.master_port);
    stream peer(
        connect_to(master, until,
                   "rank 0 at " + conf.self.master_addr + ":" + std::to_string(conf.self.master_port)),
        "rank 0", conf.start_timeout);
    peer.send(bytes_of(mine));
    verdict answer;
    peer.receive(room_of(answer));
    answer.refusal[sizeof answer.refusal - 1] = 0;
    if (answer.refusal[0]) throw failure(std::string("rank 0 refused: ") + answer.refusal);
    if (answer.entries != mine.world) throw failure("rank 0 sent a table of the wrong size");
    std::vector<entry> entries(mine.world);
    peer.receive(std::as_writable_bytes(std::span(entries)));
    return table_of(entries, mine.sizes);
}

}  // namespace

table meet(const settings& conf, int listener, std::uint64_t step) {
    const auto until = clock::now() + conf.start_timeout;
    const auto mine = hello_of(conf, listener, step);
    if (mine.world == 1) return {{sockaddr_in{}}, {mine.place}};
    return mine.rank == 0 ? gather(conf, mine, until) : enrol(conf, mine, until);
}

}  // namespace trainer
