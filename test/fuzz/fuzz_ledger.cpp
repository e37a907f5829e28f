// SPDX-License-Identifier: BSD-3-Clause
//
// What a daemon finds of a session when its keeper starts it again: the ledger's memory as a killed, or a
// newer, writer may have left it, and the session in it. Checksums are made to fit, so that the text is read.
#include <cstring>
#include <memory>

#include <sys/mman.h>
#include <unistd.h>

#include "ckptd/daemon/job_agreement.hpp"
#include "ckptd/daemon/remember.hpp"
#include "ckptd/keeper/ledger.hpp"
#include "common/crc32c.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using fuzz::must;

namespace {

constexpr std::size_t bytes = 128 * 1024;
constexpr std::uint32_t magic = 0x4c4e5942;

struct head {
    std::uint64_t sequence, bytes;
    std::uint32_t crc, magic;
};

std::shared_ptr<ckpt::job_agreement> silent_agreement() {
    ckpt::job_agreement::host h;
    h.spawn = [](task<void>) {};
    h.send = [](std::uint32_t, ckpt::job_agreement::messages) -> task<result<void>> {
        co_return result<void>{};
    };
    h.tell = h.send;
    h.bring = [](ckpt::agreement::prepare) {};
    h.keep = h.begin = h.fenced = h.changed = [] {};
    h.free = [](ckpt::agreement::shelf::id) {};
    return std::make_shared<ckpt::job_agreement>(std::move(h));
}

void recall(std::span<const std::byte> text) {
    static const auto budget = std::make_shared<ckpt::memory_budget>(1u << 20);
    static const auto made = ckpt::shard_memory::make(budget, "banyan-fuzz", 1u << 16).value();
    ckpt::session s;
    s.agreed = silent_agreement();
    ckpt::agreement::agreement agreed;
    if (!ckpt::recall(text, {{1, made}}, s, agreed)) return;
    must(s.slot == s.slot_of(s.request.self));
    for (const auto& c : s.copies)
        must(c->memory && c->offset <= c->memory->size() && c->bytes <= c->memory->size() - c->offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::input in(data, size);
    const auto fits = in.byte();  // which of the halves
    unique_fd fd(::memfd_create("banyan-fuzz-ledger", MFD_CLOEXEC));
    std::vector<std::byte> image(bytes);
    const auto half = bytes / 2;
    const auto text = in.rest().substr(0, half - sizeof(head));
    for (std::size_t i = 0; i < 2; ++i) {
        head h{};
        std::memcpy(&h, data, std::min(size, sizeof h));
        if (fits & (1u << i)) {
            h = {i + 1, text.size(), 0, magic};
            h.crc = crc32c(std::as_bytes(std::span(text)));
        }
        std::memcpy(image.data() + i * half, &h, sizeof h);
        std::memcpy(image.data() + i * half + sizeof h, text.data(), text.size());
    }
    must(fd && ::write(fd.get(), image.data(), image.size()) == static_cast<ssize_t>(image.size()));
    const auto nobody = std::make_shared<ckpt::keeper::custody>(unique_fd());
    const auto kept = ckpt::keeper::ledger::adopt(nobody, {ckpt::keeper::contents::ledger, 1, std::move(fd)});
    must(kept.has_value());
    const auto found = (*kept)->read();
    if ((fits & 3) == 0) return 0;
    must(found && found->size() == text.size() && std::memcmp(found->data(), text.data(), text.size()) == 0);
    recall(*found);
    return 0;
}
