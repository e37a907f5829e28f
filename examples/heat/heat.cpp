// SPDX-License-Identifier: BSD-3-Clause
//
// Heat on a plate, by rows over the ranks of an MPI program, saved with libbanyan_ckpt:
//
//     sbatch -N2 --train-ckpt ... --wrap 'srun ./heat2d --rows 4096 --columns 4096 --steps 100000 --every
//     100'
//
// Started again, on any nodes and after whatever end, it goes on from the newest complete step, and comes to
// the same bits as if nothing had happened: that is what the hash at the end is for. Each rank says which
// rows of the whole plate it saves.
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <banyan/ckpt.hpp>
#include <mpi.h>

namespace {

struct settings {
    std::uint64_t rows = 256, columns = 256, steps = 1000, every = 100;
    std::uint64_t die_at = 0;  ///< the last rank kills itself before this step: to see what then happens
};

int rank_of_world() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

int size_of_world() {
    int size = 0;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return size;
}

[[noreturn]] void stop(const std::string& why) {
    std::fprintf(stderr, "heat2d: rank %d: %s\n", rank_of_world(), why.c_str());
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
}

settings read_arguments(int argc, char** argv) {
    settings out;
    const struct {
        const char* name;
        std::uint64_t* into;
    } known[]{{"--rows", &out.rows},
              {"--columns", &out.columns},
              {"--steps", &out.steps},
              {"--every", &out.every},
              {"--die-at", &out.die_at}};
    for (int i = 1; i < argc; i += 2) {
        std::uint64_t* into = nullptr;
        for (const auto& k : known)
            if (std::strcmp(argv[i], k.name) == 0) into = k.into;
        char* end = nullptr;
        if (into && i + 1 < argc) *into = std::strtoull(argv[i + 1], &end, 10);
        if (!end || end == argv[i + 1] || *end != '\0')
            stop("usage: heat2d [--rows N] [--columns N] [--steps N] [--every N] [--die-at N]");
    }
    if (out.every == 0 || out.columns < 3 || out.columns > 1'000'000 || out.rows > 1'000'000 ||
        out.rows < static_cast<std::uint64_t>(size_of_world()))
        stop("a plate has a row for each rank at least, 3 columns, and a million of both at most");
    return out;
}

// This rank's rows of the plate, with a row of the neighbour's above and below.
class plate {
  public:
    plate(const settings& s, int rank, int world)
        : rank_(rank), world_(world), columns_(s.columns), all_rows_(s.rows) {
        const auto n = static_cast<std::uint64_t>(world), r = static_cast<std::uint64_t>(rank);
        first_ = all_rows_ * r / n;
        rows_ = all_rows_ * (r + 1) / n - first_;
        now_.assign((rows_ + 2) * columns_, 0.0);
        for (std::uint64_t row = 0; row < rows_; ++row)
            for (std::uint64_t column = 0; column < columns_; ++column)
                now_[(row + 1) * columns_ + column] =
                    static_cast<double>(((first_ + row) * 31 + column * 17) % 101);
        next_ = now_;
    }

    /// To be said again after each step: the two buffers change places.
    void protect(bck::session& session) {
        const std::uint64_t shape[]{rows_, columns_}, whole[]{all_rows_, columns_}, offset[]{first_, 0};
        if (const auto done = session.protect_piece("plate", own(), shape, whole, offset); !done)
            stop(done.error().text);
    }

    void step() {
        exchange();
        for (std::uint64_t row = 1; row <= rows_; ++row) {
            const auto global = first_ + row - 1;
            for (std::uint64_t column = 0; column < columns_; ++column) {
                const auto at = row * columns_ + column;
                const bool edge =
                    global == 0 || global == all_rows_ - 1 || column == 0 || column == columns_ - 1;
                const double around =
                    edge ? 0 : now_[at - 1] + now_[at + 1] + now_[at - columns_] + now_[at + columns_];
                next_[at] = edge ? now_[at] : now_[at] + 0.2 * (around - 4 * now_[at]);
            }
        }
        now_.swap(next_);
    }

    /// Of the whole plate, the same for any number of ranks: FNV-1a over its rows. On rank 0.
    std::uint64_t hash() {
        std::uint64_t h = 0xcbf29ce484222325;
        if (rank_ > 0) MPI_Recv(&h, 1, MPI_UINT64_T, rank_ - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (const auto byte : std::as_bytes(own()))
            h = (h ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3;
        if (world_ == 1) return h;
        MPI_Send(&h, 1, MPI_UINT64_T, (rank_ + 1) % world_, 1, MPI_COMM_WORLD);
        if (rank_ == 0) MPI_Recv(&h, 1, MPI_UINT64_T, world_ - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return h;
    }

  private:
    std::span<double> own() { return std::span(now_).subspan(columns_, rows_ * columns_); }

    void exchange() {
        const int above = rank_ > 0 ? rank_ - 1 : MPI_PROC_NULL;
        const int below = rank_ + 1 < world_ ? rank_ + 1 : MPI_PROC_NULL;
        const int count = static_cast<int>(columns_);
        auto* row = now_.data();
        const auto last = rows_ * columns_;
        MPI_Sendrecv(row + columns_, count, MPI_DOUBLE, above, 0, row + last + columns_, count, MPI_DOUBLE,
                     below, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(row + last, count, MPI_DOUBLE, below, 0, row, count, MPI_DOUBLE, above, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    int rank_, world_;
    std::uint64_t columns_, all_rows_, first_ = 0, rows_ = 0;
    std::vector<double> now_, next_;
};

void run(const settings& s) {
    const int rank = rank_of_world(), world = size_of_world();
    bck::session session(nullptr, rank, world);
    plate heat(s, rank, world);
    heat.protect(session);
    std::uint64_t done = 0;  // steps
    const auto found = session.restart();
    // Where no daemon was promised it computes all the same. What is not known to be none is no reason to
    // begin anew, and a daemon that should be there may have it.
    const bool promised = std::getenv("BANYAN_CKPT_SOCKET") && !std::getenv("BANYAN_CKPT_OFF");
    if (!found && (promised || found.error().code != BCK_E_NODAEMON)) stop(found.error().text);
    if (found && *found) done = (*found)->step;
    if (rank == 0) std::printf("begins after step %" PRIu64 "\n", done);
    std::fflush(stdout);
    while (done < s.steps) {
        if (s.die_at != 0 && done + 1 == s.die_at && rank == world - 1) std::raise(SIGKILL);
        heat.step();
        if (++done % s.every != 0) continue;
        heat.protect(session);
        // A save that does not come about is no reason to stop either: the one before it stands. Only
        // ranks that went back are: this one would wait for them in the next exchange.
        const auto saved = session.checkpoint(done);
        if (!saved && saved.error().code == BCK_E_STALE) stop(saved.error().text);
    }
    const auto hash = heat.hash();
    if (rank == 0) std::printf("step %" PRIu64 ", hash %016" PRIx64 "\n", done, hash);
    const auto drained = session.finalize(true);
    if (!drained && rank == 0) std::fprintf(stderr, "heat2d: %s\n", drained.error().text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    run(read_arguments(argc, argv));
    MPI_Finalize();
}
