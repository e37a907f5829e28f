// SPDX-License-Identifier: BSD-3-Clause
//
// What a checkpoint daemon is told of a job: sessions, steps, keys, lists of ranks, and what the daemons of a
// job say to each other.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "ckptd/daemon/encoding.hpp"
#include "ckptd/daemon/packing.hpp"
#include "ckptd/daemon/request.hpp"
#include "common/wire.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using fuzz::must;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    const auto first = in.text(), second = in.text();
    const ckpt::agreement::limits most{4, 16, 1000};
    if (const auto packed = ckpt::agreement::unpack(std::as_bytes(std::span(first)), most)) {
        std::vector<std::byte> out;
        for (const auto& m : *packed) must(ckpt::agreement::pack(m, out));
        must(std::ranges::equal(out, std::as_bytes(std::span(first))));
    }
    const auto meta = wire::decode_meta(std::as_bytes(std::span(first)));
    if (!meta) return 0;
    const auto session = ckpt::parse_session(*meta);
    if (const auto key = ckpt::get_key(*meta)) {
        auto out = nlohmann::json::object();
        ckpt::put_key(out, *key);
        must(ckpt::get_key(out) == *key);
    }
    if (const auto m = ckpt::agreement::decode(*meta, most)) {
        const std::vector<std::uint32_t> all{0, 1, 2, 3, 15};
        const auto out = ckpt::agreement::encode(*m, all);
        const auto again = ckpt::agreement::decode(out, most);
        must(again && ckpt::agreement::encode(*again, all) == out);
    }
    if (const auto ranks = json_fields(*meta).numbers("ranks", 100)) must(ranks->size() <= 100);
    if (!session) return 0;
    std::size_t ranks = 0;
    for (const auto& node : session->nodes) {
        must(node.buddy < session->nodes.size() && !node.name.empty());
        ranks += node.ranks.size();
    }
    must(ranks == session->world && (session->dir.empty() || session->dir.front() == '/'));
    const auto step = wire::decode_meta(std::as_bytes(std::span(second)));
    if (!step) return 0;
    if (const auto names = ckpt::parse_step_nodes(*step, *session))
        must(names->size() == session->nodes.size());
    return 0;
}
