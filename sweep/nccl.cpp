// SPDX-License-Identifier: BSD-3-Clause
//
// NCCL's types come from its header, its functions by dlopen: the library is that of the node.
#include <algorithm>
#include <cstdio>
#include <functional>

#include <dlfcn.h>
#include <fmt/format.h>
#include <nccl.h>

#include "hardware/cuda.hpp"
#include "hardware/loaded.hpp"
#include "sweep/allreduce.hpp"

namespace banyan::sweep {
namespace {

using hardware::cuda;
using tick = std::chrono::steady_clock;

struct nccl_functions {
    decltype(&ncclCommInitAll) init = nullptr;
    decltype(&ncclAllReduce) all_reduce = nullptr;
    decltype(&ncclGroupStart) begin = nullptr;
    decltype(&ncclGroupEnd) end = nullptr;
    decltype(&ncclGetErrorString) text = nullptr;
};

result<nccl_functions> load_nccl(const std::string& library) {
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail(errc::not_found, fmt::format("NCCL's library {} is not on this node", library),
                    "install it, or take allreduce out of [sweep]");
    nccl_functions f;
    if (!hardware::find_function(handle, "ncclCommInitAll", f.init) ||
        !hardware::find_function(handle, "ncclAllReduce", f.all_reduce) ||
        !hardware::find_function(handle, "ncclGroupStart", f.begin) ||
        !hardware::find_function(handle, "ncclGroupEnd", f.end) ||
        !hardware::find_function(handle, "ncclGetErrorString", f.text))
        return fail(errc::not_found, fmt::format("{} lacks functions that NCCL has had since 2.0", library));
    return f;
}

/// Small whole addends: their sum over all GPUs is exact, in whatever order it was made.
float addend_at(std::size_t at, std::uint32_t gpu) { return static_cast<float>(at % 13 + gpu); }

float sum_at(std::size_t at, std::uint32_t gpus) {
    return static_cast<float>(gpus * (at % 13) + gpus * (gpus - 1) / 2);
}

class reducer {
  public:
    reducer(cuda by, nccl_functions f, std::size_t bytes)
        : by_(by),
          f_(f),
          gpus_(by.count()),
          addends_(bytes / sizeof(float)),
          bytes_(addends_ * sizeof(float)) {}

    result<reduction> run(tick::duration time) {
        BANYAN_CHECK(prepare());
        BANYAN_CHECK(reduce());  // the first one sets up the ways between the GPUs
        auto best = tick::duration::max();
        const auto until = tick::now() + time;
        for (int round = 0; round < 2 || tick::now() < until; ++round) {
            const auto begin = tick::now();
            BANYAN_CHECK(reduce());
            best = std::min(best, tick::now() - begin);
        }
        reduction out;
        out.gpus = gpus_;
        const auto seconds = std::max(std::chrono::duration<double>(best).count(), 1e-9);
        out.bus_bytes_per_second = static_cast<double>(bytes_) / seconds * 2 * (gpus_ - 1) / gpus_;
        BANYAN_CHECK(look_at_sums(out));
        return out;
    }

  private:
    struct one_gpu {
        std::string bus_id{};
        cuda::pointer in = 0, out = 0;
        cuda::stream stream = nullptr;
    };

    result<void> done(const char* doing, ncclResult_t why) const {
        if (why == ncclSuccess) return {};
        return fail(errc::unavailable, fmt::format("{}: NCCL says {}", doing, f_.text(why)),
                    "NCCL_DEBUG=WARN tells more");
    }

    result<void> prepare() {
        BANYAN_CHECK(by_.use(0));
        BANYAN_TRY(void* const host, by_.allocate_on_host(bytes_));
        host_ = static_cast<float*>(host);
        std::vector<int> order;
        for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
            one_gpu g;
            BANYAN_TRY(g.bus_id, by_.bus_id(gpu));
            BANYAN_CHECK(by_.use(gpu));
            BANYAN_TRY(g.in, by_.allocate(bytes_));
            BANYAN_TRY(g.out, by_.allocate(bytes_));
            BANYAN_TRY(g.stream, by_.make_stream());
            for (std::size_t i = 0; i < addends_; ++i) host_[i] = addend_at(i, gpu);
            BANYAN_CHECK(by_.to_gpu(g.in, host_, bytes_));
            each_.push_back(std::move(g));
            order.push_back(static_cast<int>(gpu));
        }
        comms_.resize(gpus_);
        return done("the GPUs cannot be joined",
                    f_.init(comms_.data(), static_cast<int>(gpus_), order.data()));
    }

    result<void> reduce() {
        BANYAN_CHECK(done("an all-reduce does not begin", f_.begin()));
        for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
            const auto& g = each_[gpu];
            BANYAN_CHECK(done(
                "an all-reduce does not begin",
                f_.all_reduce(reinterpret_cast<const void*>(g.in), reinterpret_cast<void*>(g.out), addends_,
                              ncclFloat, ncclSum, comms_[gpu], static_cast<cudaStream_t>(g.stream))));
        }
        BANYAN_CHECK(done("an all-reduce does not begin", f_.end()));
        for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
            BANYAN_CHECK(by_.use(gpu));
            BANYAN_CHECK(by_.wait_for(each_[gpu].stream));
        }
        return {};
    }

    result<void> look_at_sums(reduction& into) {
        for (std::uint32_t gpu = 0; gpu < gpus_; ++gpu) {
            BANYAN_CHECK(by_.use(gpu));
            std::fill_n(host_, addends_, -1.f);
            BANYAN_CHECK(by_.from_gpu(host_, each_[gpu].out, bytes_));
            for (std::size_t i = 0; i < addends_; ++i)
                if (host_[i] != sum_at(i, gpus_)) {
                    into.wrong.push_back(each_[gpu].bus_id);
                    break;
                }
        }
        return {};
    }

    cuda by_;
    nccl_functions f_;
    std::uint32_t gpus_;
    std::size_t addends_, bytes_;
    float* host_ = nullptr;
    std::vector<one_gpu> each_;
    std::vector<ncclComm_t> comms_;
};

}  // namespace

bool built_with_nccl() { return true; }

result<reduction> measure_allreduce(const std::string& cuda_name, const std::string& nccl_name,
                                    std::size_t bytes, tick::duration time) {
    BANYAN_TRY(const auto by, cuda::open(cuda_name));
    if (by.count() == 0) return fail(errc::unavailable, "CUDA has no GPU");
    if (by.count() == 1) return reduction{1};
    BANYAN_TRY(const auto f, load_nccl(nccl_name));
    fmt::print(stderr, "an all-reduce over {} GPUs\n", by.count());
    (void)std::fflush(stderr);
    return reducer(by, f, bytes).run(time);
}

}  // namespace banyan::sweep
