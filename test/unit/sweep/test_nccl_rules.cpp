// SPDX-License-Identifier: BSD-3-Clause
//
// The mock of NCCL refuses whoever breaks a rule of the real one: each rule is broken here once.
#include <vector>

#include "nvidia_rules.hpp"
#include "test/built.hpp"

namespace test_nccl_rules {

using namespace nvidia_rules;
using banyan::testing::refused;

namespace {

/// An all-reduce over two GPUs.
struct sums {
    explicit sums(const driver& with) : d(with) {
        const int order[] = {0, 1};
        d.call("ncclCommInitAll", static_cast<void**>(comms), 2, static_cast<const int*>(order));
        for (int n = 0; n < 2; ++n) {
            d.use(n);
            in[n] = d.allocate(kib), out[n] = d.allocate(kib), on[n] = stream(d);
            d.put(in[n], std::vector<unsigned char>(kib));
        }
    }
    void join(int n, int with_stream_of, std::size_t count = 16) const {
        d.call("ncclAllReduce", static_cast<const void*>(in[n]), out[n], count, 7, 0, comms[n],
               on[with_stream_of]);
    }
    void all(std::size_t second = 16) const {
        d.call("ncclGroupStart");
        join(0, 0);
        join(1, 1, second);
        d.call("ncclGroupEnd");
    }
    const driver& d;
    void *comms[2]{}, *in[2]{}, *out[2]{}, *on[2]{};
};

}  // namespace

TEST_CASE("sums that were waited for can be read", "[nvidia]") {
    CHECK(refused([] {
              const driver d(banyan::testing::built("mock_nvidia"));
              const sums s(d);
              s.all();
              d.use(0), d.call("cuStreamSynchronize", s.on[0]), d.get(s.out[0], kib);
          }).empty());
}

TEST_CASE("rules of streams and collectives", "[nvidia]") {
    CHECK(is_refused("there is no such stream", [](const driver& d) {
        d.call("cuStreamSynchronize", static_cast<void*>(memory(kib)));
    }));
    CHECK(is_refused("stream is of another context", [](const driver& d) {
        void* const one = stream(d);
        d.use(1), d.call("cuStreamSynchronize", one);
    }));
    CHECK(is_refused("was not waited for", [](const driver& d) {
        const sums s(d);
        s.all(), d.get(s.out[1], kib);
    }));
    CHECK(is_refused("within a group", [](const driver& d) { sums(d).join(0, 0); }));
    CHECK(is_refused("stream is of another context", [](const driver& d) {
        const sums s(d);
        d.call("ncclGroupStart"), s.join(0, 1);
    }));
    CHECK(is_refused("every rank takes part", [](const driver& d) {
        const sums s(d);
        d.call("ncclGroupStart"), s.join(0, 0), d.call("ncclGroupEnd");
    }));
    CHECK(is_refused("different counts", [](const driver& d) { sums(d).all(8); }));
    CHECK(is_refused("a group is open already",
                     [](const driver& d) { d.call("ncclGroupStart"), d.call("ncclGroupStart"); }));
    CHECK(is_refused("no group is open", [](const driver& d) { d.call("ncclGroupEnd"); }));
    CHECK(is_refused("no such communicator", [](const driver& d) {
        sums s(d);
        s.comms[0] = memory(kib), d.call("ncclGroupStart"), s.join(0, 0);
    }));
    CHECK(is_refused("no memory of a GPU has all", [](const driver& d) {
        const sums s(d);
        d.call("ncclGroupStart"), s.join(0, 0, kib);
    }));
}

}  // namespace test_nccl_rules
