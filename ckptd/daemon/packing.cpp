// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/packing.hpp"

#include <bit>
#include <cstring>

namespace banyan::ckpt::agreement {
namespace {

static_assert(std::endian::native == std::endian::little,
              "packed as the machine has it, which is as frames are");

enum kind : std::uint64_t { a_vote = 1, a_commit, a_passed_over, a_still_needed, a_let_go };
constexpr std::uint64_t most_kept = 1024;  // more than a rank has buffers

class packer {
  public:
    explicit packer(std::vector<std::byte>& out) : out_(out) {}
    void operator()(std::uint64_t word) {
        const auto at = out_.size();
        out_.resize(at + sizeof word);
        std::memcpy(out_.data() + at, &word, sizeof word);
    }
    void operator()(const copy_key& key) { (*this)(key.generation), (*this)(key.step); }
    void operator()(level safety) { (*this)(static_cast<std::uint64_t>(safety)); }
    void operator()(const held& h) { (*this)(h.key), (*this)(h.rank); }

    void begin(kind k, std::uint64_t generation) { (*this)(k), (*this)(generation); }

  private:
    std::vector<std::byte>& out_;
};

class unpacker {
  public:
    unpacker(std::span<const std::byte> in, const limits& most) : in_(in), most_(most) {}
    bool at_end() const { return in_.empty(); }
    /// False once anything was not as it should be; what was read then says nothing.
    bool good() const { return good_; }

    std::uint64_t word(std::uint64_t max = UINT64_MAX) {
        std::uint64_t out = 0;
        good_ = good_ && in_.size() >= sizeof out;
        if (!good_) return 0;
        std::memcpy(&out, in_.data(), sizeof out);
        in_ = in_.subspan(sizeof out);
        good_ = out <= max;
        return good_ ? out : 0;
    }
    std::uint32_t rank() {
        good_ = good_ && most_.world != 0;
        return static_cast<std::uint32_t>(word(most_.world - 1ull));
    }
    copy_key key() {
        const auto generation = word();
        return {generation, word(most_.max_step)};
    }
    level safety() { return static_cast<level>(word(static_cast<std::uint64_t>(level::replicated))); }
    held what() {
        const auto of = key();
        return {of, rank()};
    }
    vote a_rank_s_vote() {
        vote out;
        out.rank = rank();
        out.first = word();
        out.end = word();
        for (auto left = word(most_kept); left != 0 && good_; --left) {
            const auto of = key();
            const auto safe = safety();
            out.kept.push_back({of, safe, word(1) != 0});
        }
        return out;
    }
    body next(std::uint64_t of) {
        switch (of) {
            case a_vote:
                return a_rank_s_vote();
            case a_commit: {
                const auto which = key();
                return commit{which, safety()};
            }
            case a_passed_over:
                return passed_over{key()};
            case a_still_needed:
                return still_needed{what()};
            case a_let_go:
                return let_go{what()};
            default:
                good_ = false;
                return {};
        }
    }

  private:
    std::span<const std::byte> in_;
    const limits most_;
    bool good_ = true;
};

}  // namespace

bool pack(const message& m, std::vector<std::byte>& out) {
    const auto before = out.size();
    packer p(out);
    if (const auto* v = std::get_if<vote>(&m.what); v && v->kept.size() <= most_kept) {
        p.begin(a_vote, m.generation);
        p(v->rank), p(v->first), p(v->end), p(v->kept.size());
        for (const auto& one : v->kept) p(one.key), p(one.safety), p(std::uint64_t{one.heard});
    } else if (const auto* c = std::get_if<commit>(&m.what)) {
        p.begin(a_commit, m.generation);
        p(c->key), p(c->safety);
    } else if (const auto* o = std::get_if<passed_over>(&m.what)) {
        p.begin(a_passed_over, m.generation);
        p(o->key);
    } else if (const auto* s = std::get_if<still_needed>(&m.what)) {
        p.begin(a_still_needed, m.generation);
        p(s->what);
    } else if (const auto* l = std::get_if<let_go>(&m.what)) {
        p.begin(a_let_go, m.generation);
        p(l->what);
    }
    if (out.size() > most_packed) out.resize(before);
    return out.size() != before;
}

result<std::vector<message>> unpack(std::span<const std::byte> in, const limits& most) {
    std::vector<message> out;
    unpacker from(in, most);
    while (from.good() && !from.at_end()) {
        const auto of = from.word();
        const auto generation = from.word();
        out.push_back({generation, from.next(of)});
    }
    if (!from.good())
        return fail(errc::invalid_input, "what the agreement's messages say is not what it should be");
    return out;
}

}  // namespace banyan::ckpt::agreement
