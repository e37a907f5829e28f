// SPDX-License-Identifier: BSD-3-Clause
//
// A rank for the tests: reads commands, calls libbanyan_ckpt, prints what came back.
//     save STEP             -> code
//     wait STEP LEVEL MS     -> code
//     test                  -> "code step"
//     restart               -> "code step source same": `same` is 1 when every byte is that step's
//     beat STEP PHASE       -> 0
//     grow BYTES            -> code: one more region
//     reserve               -> code
//     protect               -> code: everything, as at the start, layer.weight as a piece
//     pieces PARTS PART     -> code: everything, each region as that part of so many, with that part's state
//     unprotect NAME        -> code
//     given STEP NAME[:BYTES] ...
//                           -> code: a save of these alone, in new memory; without BYTES a protected one
//     into NAME:BYTES ...   -> "code step source same": a restart into these alone
//     allocations           -> how many the last save has made
//     stat                  -> "code step NAME:DTYPE:SHAPE:BYTES ..."; a piece has "@OFFSET/GLOBAL" behind
//     finalize DRAIN        -> code
//     error                 -> bck_error()
//     fork                  -> 0: a child has the connection, too, until nobody writes commands any more
//     hang_up               -> code: bck_init once more; no word to the daemon
//     open NAME             -> 0, or -1: a second state, with as many bytes as the first one
//     scribble bytes|holes|header
//                           -> how many mappings of buffers there are: from now on a thread writes to them,
//                           or
//                              takes pages out of them, or writes to what the daemon reads of them
//     rows FIRST COUNT ALL  -> 0: from now on the state is these rows of a table
//     rows_own              -> 0: and bytes that are the rank's own
//     rows_save STEP        -> code
//     rows_restart          -> "code step source same"
//     rows_read             -> the same, by bck_reader_open_job
//     in NAME save|wait|test|restart|pieces ...
//                           -> of that state
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <future>
#include <iostream>
#include <map>
#include <new>
#include <sstream>
#include <thread>
#include <vector>

#include <banyan/ckpt.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "answer.hpp"
#include "ckptd/buffers/rank_memory.hpp"
#include "common/clock.hpp"
#include "state.hpp"
#include "table_state.hpp"

using ckptd_test::found_step;
using ckptd_test::restored_state;

namespace {

std::string in_words(const restored_state& s) {
    std::ostringstream out;
    out << s;
    return out.str();
}

std::string extents(const std::uint64_t* of, int ndim) {
    std::string out = "[";
    for (int i = 0; i < ndim; ++i) out += (i == 0 ? "" : ",") + std::to_string(of[i]);
    return out + "]";
}

std::string stat() {
    bck_contents* found = nullptr;
    const int code = bck_stat(&found);
    auto out = std::to_string(code) + " " + std::to_string(bck_contents_step(found));
    for (std::size_t i = 0; i < bck_contents_size(found); ++i) {
        bck_region r{}, same{};
        if (bck_contents_at(found, i, &r) != BCK_OK || bck_contents_find(found, r.name, &same) != BCK_OK ||
            same.shape != r.shape)
            out += " wrong";
        out += std::string(" ") + r.name + ":" + r.dtype + ":" + extents(r.shape, r.ndim) + ":" +
               std::to_string(r.bytes);
        if (r.global_shape) out += "@" + extents(r.offset, r.ndim) + "/" + extents(r.global_shape, r.ndim);
    }
    bck_contents_free(found);
    return out;
}

std::atomic<std::size_t> allocations{0};

/// What a process can do to its own buffers, without end.
std::size_t scribble(const std::string& what) {
    struct mapping {
        volatile unsigned char* at;
        std::size_t bytes;
    };
    std::vector<mapping> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        if (line.find("/memfd:banyan-") == std::string::npos || line.find(" rw-s ") == std::string::npos)
            continue;
        std::size_t end_of_first = 0;
        const auto first = std::stoull(line, &end_of_first, 16);
        const auto last = std::stoull(line.substr(end_of_first + 1), nullptr, 16);
        all.push_back({reinterpret_cast<volatile unsigned char*>(first), last - first});
    }
    constexpr std::size_t page = banyan::ckpt::page_bytes;
    std::promise<void> over;  // with each of them once
    auto once = over.get_future();
    std::thread([all, what, over = std::move(over)]() mutable {
        for (unsigned n = 1;; ++n) {
            for (const auto& m : all) {
                if (what == "holes")
                    ::madvise(const_cast<unsigned char*>(m.at) + page, m.bytes - page, MADV_REMOVE);
                else if (what == "header")
                    for (std::size_t i = n % 8; i < page; i += 8)
                        m.at[i] = static_cast<unsigned char>(n * 37);
                else
                    for (std::size_t i = page + n % 64; i < m.bytes; i += 64)
                        m.at[i] = static_cast<unsigned char>(n);
            }
            if (n == 1) over.set_value();
        }
    }).detach();
    once.wait();
    return all.size();
}

/// Regions for one call, from words NAME:BYTES or NAME.
struct given_state {
    std::vector<std::string> names;
    std::vector<std::vector<unsigned char>> memory;
    std::vector<std::uint64_t> extents;
    std::vector<bck_tensor> tensors;

    explicit given_state(std::istream& words) {
        for (std::string word; words >> word;) {
            const auto colon = word.find(':');
            names.push_back(word.substr(0, colon));
            extents.push_back(colon == std::string::npos ? 0 : std::stoull(word.substr(colon + 1)));
            memory.emplace_back(extents.back());
        }
        for (std::size_t i = 0; i < names.size(); ++i)
            tensors.push_back({names[i].c_str(), memory[i].data(), extents[i],
                               extents[i] == 0 ? nullptr : "U8", 1, &extents[i], nullptr, nullptr});
    }
    std::vector<unsigned char> of(std::size_t i, std::uint32_t rank, std::uint64_t step) const {
        const auto salt = static_cast<std::uint32_t>(std::hash<std::string>()(names[i]) % 1000);
        return ckptd_test::state_of(rank + 100 * salt, step, extents[i]);
    }
};

/// A second state, whose bytes are never those of another one at the same step.
class second_state {
  public:
    second_state(const std::string& name, std::uint32_t rank, std::size_t bytes)
        : handle_(bck_open(name.c_str())), own_(rank), rank_(rank), data_(bytes) {
        for (const char c : name) rank_ += 100'003u * static_cast<unsigned char>(c);
        part_ = rank_;
        if (handle_) bck_state_protect_bytes(handle_, "all", data_.data(), data_.size());
    }
    bool is_open() const { return handle_ != nullptr; }
    std::string answer(std::istream& words) {
        std::string command;
        words >> command;
        std::uint64_t step = 0;
        if (command == "save") {
            words >> step;
            fill(step);
            return std::to_string(bck_state_checkpoint(handle_, step));
        }
        if (command == "wait") {
            int level = 0, ms = 0;
            words >> step >> level >> ms;
            return std::to_string(bck_state_wait(handle_, step, level, ms));
        }
        if (command == "pieces") {
            std::uint64_t parts = 0, part = 0;
            words >> parts >> part;
            part_ = static_cast<std::uint32_t>(part) + rank_ - own_;
            const std::uint64_t count = data_.size(), all = parts * count, begin = part * count;
            return std::to_string(bck_state_protect_piece(handle_, "all", data_.data(), data_.size(), "U8",
                                                          &count, 1, &all, &begin));
        }
        if (command == "test") {
            const int code = bck_state_restart_query(handle_, &step);
            return std::to_string(code) + " " + std::to_string(step);
        }
        std::fill(data_.begin(), data_.end(), 0xee);
        int source = 0;
        const int code = bck_state_restart(handle_, &step, &source);
        const bool same = code == BCK_OK && data_ == ckptd_test::state_of(part_, step, data_.size());
        return in_words({code, step, source, same});
    }

  private:
    void fill(std::uint64_t step) {
        const auto now = ckptd_test::state_of(part_, step, data_.size());
        std::copy(now.begin(), now.end(), data_.begin());
    }
    bck_state* handle_;
    std::uint32_t own_, rank_, part_ = 0;  ///< the rank; that of this state; whose bytes it has
    std::vector<unsigned char> data_;
};

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t bytes) {
    ++allocations;
    if (void* at = std::malloc(bytes == 0 ? 1 : bytes)) return at;
    throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
    ++allocations;
    return std::malloc(bytes == 0 ? 1 : bytes);
}
[[gnu::noinline]] void operator delete(void* at) noexcept { std::free(at); }
[[gnu::noinline]] void operator delete(void* at, std::size_t) noexcept { std::free(at); }

int main() {
    ::signal(SIGPIPE, SIG_IGN);
    if (!banyan::clock::follow_environment()) return 1;
    const auto bytes = std::strtoull(std::getenv("STATE_BYTES"), nullptr, 10);
    const auto rank = static_cast<std::uint32_t>(std::strtoul(std::getenv("RANK"), nullptr, 10));
    std::vector<unsigned char> state(bytes), grown;
    std::uint64_t step = 0;
    const int init = bck_init(nullptr, -1, -1);
    const std::uint64_t half = bytes / 2 / 4;
    bck_protect("layer.weight", state.data(), half * 4, "F32", &half, 1);
    bck_protect_bytes("rest", state.data() + half * 4, bytes - half * 4);
    bck_protect("step", &step, sizeof step, "U64", nullptr, 0);
    bool moves = true;  // each save's state lies elsewhere
    auto part = rank;   // whose state it is
    std::size_t allocated = 0;
    std::map<std::string, second_state> others;
    ckptd_test::table_state table(0, 0, 0);
    std::string line;
    while (std::getline(std::cin, line)) {
        std::istringstream words(line);
        std::string command;
        words >> command;
        if (command == "init") {
            std::cout << init << std::endl;
        } else if (command == "save") {
            words >> step;
            auto now = ckptd_test::state_of(part, step, bytes);
            if (moves) {
                state = std::move(now);
                bck_protect("layer.weight", state.data(), half * 4, "F32", &half, 1);
                bck_protect_bytes("rest", state.data() + half * 4, bytes - half * 4);
            } else {
                std::copy(now.begin(), now.end(), state.begin());
            }
            const auto before = allocations.load();
            const int code = bck_checkpoint(step);
            allocated = allocations - before;
            std::cout << code << std::endl;
        } else if (command == "given") {
            words >> step;
            given_state given(words);
            for (std::size_t i = 0; i < given.names.size(); ++i) {
                const auto now = given.of(i, rank, step);
                std::copy(now.begin(), now.end(), given.memory[i].begin());
            }
            const auto before = allocations.load();
            const int code = bck_checkpoint_of(step, given.tensors.data(), given.tensors.size());
            allocated = allocations - before;
            std::cout << code << std::endl;
        } else if (command == "into") {
            given_state given(words);
            std::uint64_t found = 0;
            int source = 0;
            const int code = bck_restart_into(&found, &source, given.tensors.data(), given.tensors.size());
            bool same = code == BCK_OK;
            for (std::size_t i = 0; i < given.names.size() && same; ++i)
                same = given.memory[i] == given.of(i, rank, found);
            std::cout << restored_state{code, found, source, same} << std::endl;
        } else if (command == "allocations") {
            std::cout << allocated << std::endl;
        } else if (command == "wait") {
            std::uint64_t which = 0;
            int level = 0, ms = 0;
            words >> which >> level >> ms;
            std::cout << bck_wait(which, level, ms) << std::endl;
        } else if (command == "beat") {
            std::uint64_t at = 0;
            std::uint32_t phase = 0;
            words >> at >> phase;
            bck_heartbeat(at, phase);
            std::cout << 0 << std::endl;
        } else if (command == "milestone") {
            std::uint64_t which = 0;
            std::string name;
            words >> which >> name;
            std::cout << bck_milestone(which, name.c_str()) << std::endl;
        } else if (command == "test") {
            std::uint64_t found = 0;
            const int code = bck_restart_query(&found);
            std::cout << found_step{code, found} << std::endl;
        } else if (command == "restart") {
            std::fill(state.begin(), state.end(), 0xee);
            step = 0;
            std::uint64_t found = 0;
            int source = 0;
            const int code = bck_restart(&found, &source);
            const bool same =
                code == BCK_OK && step == found && state == ckptd_test::state_of(part, found, bytes);
            std::cout << restored_state{code, found, source, same} << std::endl;
        } else if (command == "grow") {
            std::size_t more = 0;
            words >> more;
            grown.resize(more);
            std::cout << bck_protect_bytes("grown", grown.data(), more) << std::endl;
        } else if (command == "reserve") {
            std::cout << bck_reserve(nullptr, 0) << std::endl;
        } else if (command == "protect") {
            moves = false;
            const std::uint64_t at = rank * half, all = 4 * half;
            int code = bck_protect_piece("layer.weight", state.data(), half * 4, "F32", &half, 1, &all, &at);
            if (code == BCK_OK) code = bck_protect_bytes("rest", state.data() + half * 4, bytes - half * 4);
            if (code == BCK_OK) code = bck_protect("step", &step, sizeof step, "U64", nullptr, 0);
            std::cout << code << std::endl;
        } else if (command == "pieces") {
            moves = false;
            std::uint64_t parts = 0;
            words >> parts >> part;
            const std::uint64_t rest = bytes - half * 4, none = 0;
            const auto piece = [&](const char* name, void* at, const char* dtype, std::size_t size,
                                   std::uint64_t count) {
                const std::uint64_t all = parts * count, begin = part * count;
                return bck_protect_piece(name, at, size, dtype, &count, 1, &all, &begin);
            };
            int code = piece("layer.weight", state.data(), "F32", half * 4, half);
            if (code == BCK_OK) code = piece("rest", state.data() + half * 4, "U8", rest, rest);
            // As an optimizer has it: a scalar, the same on all ranks.
            if (code == BCK_OK)
                code = bck_protect_piece("step", &step, sizeof step, "U64", nullptr, 0, &none, &none);
            std::cout << code << std::endl;
        } else if (command == "rows") {
            std::uint64_t first = 0, count = 0, all = 0;
            words >> first >> count >> all;
            table = {first, count, all};
            std::cout << 0 << std::endl;
        } else if (command == "rows_own") {
            table.add_own(rank);
            std::cout << 0 << std::endl;
        } else if (command == "rows_save") {
            words >> step;
            std::cout << table.save(step) << std::endl;
        } else if (command == "rows_restart") {
            std::cout << table.restart() << std::endl;
        } else if (command == "rows_read") {
            std::cout << table.read() << std::endl;
        } else if (command == "unprotect") {
            std::string name;
            words >> name;
            moves = false;
            std::cout << bck_unprotect(name.c_str()) << std::endl;
        } else if (command == "stat") {
            std::cout << stat() << std::endl;
        } else if (command == "finalize") {
            int drain = 0;
            words >> drain;
            std::cout << bck_finalize(drain) << std::endl;
        } else if (command == "fork") {
            if (::fork() == 0) {
                char none = 0;
                while (::read(0, &none, 1) > 0) continue;
                ::_exit(0);
            }
            std::cout << 0 << std::endl;
        } else if (command == "open") {
            std::string name;
            words >> name;
            others.erase(name);
            const auto& opened = others.try_emplace(name, name, rank, bytes).first->second;
            std::cout << (opened.is_open() ? 0 : -1) << std::endl;
        } else if (command == "in") {
            std::string name;
            words >> name;
            std::cout << others.try_emplace(name, name, rank, bytes).first->second.answer(words) << std::endl;
        } else if (command == "scribble") {
            std::string what;
            words >> what;
            std::cout << scribble(what) << std::endl;
        } else if (command == "hang_up") {
            std::cout << bck_init(nullptr, -1, -1) << std::endl;
        } else if (command == "error") {
            std::cout << bck_error() << std::endl;
        } else if (command == "loop") {
            // Saves without end: to be killed in the middle of a copy.
            words >> step;
            for (;; ++step) {
                std::fill(state.begin(), state.end(), static_cast<unsigned char>(step));
                bck_checkpoint(step);
            }
        }
    }
}
