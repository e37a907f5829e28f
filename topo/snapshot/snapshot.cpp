// SPDX-License-Identifier: BSD-3-Clause
#include <bit>
#include <cstring>
#include <type_traits>

#include <banyan/topo/capacity.hpp>
#include <banyan/topo/snapshot.hpp>
#include <fmt/format.h>

#include "common/crc32c.hpp"
#include "common/file.hpp"
#include "topo/model/names.hpp"
#include "topo/readers/disarm.hpp"

namespace banyan::topo {
namespace {

static_assert(std::endian::native == std::endian::little, "snapshots are written as the machine has them");
constexpr std::string_view magic("BNYNFAB\0", 8);
constexpr std::uint32_t version = 7;
constexpr std::size_t head_bytes = 24;

// One description of the fields serves both directions: `io` is a field_writer or a field_reader.
template <class Io>
void fields(Io& io, link_rate& r) {
    io.number(r.width);
    io.number(r.lane_gbps10);
}
template <class Io>
void fields(Io& io, switch_node& s) {
    io.number(s.id);
    io.text(s.name);
    io.number(s.lid);
    io.number(s.ports);
    io.number(s.level);
    io.number(s.box);
    io.number(s.plane);
    io.number(s.sharp);
    io.number(s.device);
}
template <class Io>
void fields(Io& io, hca& h) {
    io.number(h.id);
    io.text(h.name);
    io.text(h.device);
    io.number(h.host);
    io.number(h.rail);
    io.number(h.leaf);
    io.number(h.leaf_port);
    io.number(h.lid);
    io.number(h.planes);
    fields(io, h.rate);
    io.number(h.confidence);
}
template <class Io>
void fields(Io& io, port_ref& p) {
    io.number(p.kind);
    io.number(p.index);
    io.number(p.port);
}
template <class Io>
void fields(Io& io, link& l) {
    fields(io, l.a);
    fields(io, l.b);
    fields(io, l.rate);
    io.number(l.bad);
}
template <class Io>
void fields(Io& io, host& h) {
    io.text(h.name);
    io.number(h.leaf_group);
    io.number(h.confidence);
    io.list(h.hcas);
    io.number(h.rails);
    io.text(h.nvlink_domain);
    io.list(h.failure_domains);
}
template <class Io>
void fields(Io& io, leaf_group& g) {
    io.text(g.id);
    io.list(g.leaves);
    io.list(g.rails);
    io.list(g.hosts);
    io.number(g.spine_group);
    io.number(g.island);
    io.number(g.alignment);
}
template <class Io>
void fields(Io& io, exclusion& e) {
    io.number(e.id);
    io.text(e.name);
    io.text(e.kind);
    io.text(e.why);
}
template <class Io>
void fields(Io& io, wan_link& w) {
    io.number(w.a);
    io.number(w.b);
    io.number(w.gbps);
}
template <class Io>
void fields(Io& io, defect& d) {
    io.text(d.kind);
    io.list(d.objects);
    io.text(d.evidence);
    io.number(d.confidence);
    io.list(d.where);
}
template <class Io>
void fields(Io& io, gone_group& g) {
    io.text(g.id);
    io.list(g.leaves);
}
template <class Io>
void fields(Io& io, subnet_manager& m) {
    io.number(m.id);
    io.number(m.lid);
    io.text(m.name);
    io.number(m.state);
    io.number(m.priority);
}
template <class Io>
void fields(Io& io, untold_facts& u) {
    io.number(u.cables);
    io.number(u.rails);
    io.number(u.devices);
    io.number(u.rates);
    io.number(u.upper);
    io.number(u.guids);
}
template <class Io>
void fields(Io& io, fabric& f) {
    io.number(f.source_crc);
    io.number(f.created_unix_s);
    io.list(f.switches);
    io.list(f.hcas);
    io.list(f.links);
    io.list(f.hosts);
    io.list(f.leaf_groups);
    io.list(f.excluded);
    io.list(f.defects);
    io.list(f.wan);
    io.list(f.gone_groups);
    io.list(f.managers);
    fields(io, f.untold);
}

class field_writer {
  public:
    template <class Number>
    void number(const Number& n) {
        out.append(reinterpret_cast<const char*>(&n), sizeof n);
    }
    void text(const std::string& s) {
        number(static_cast<std::uint32_t>(s.size()));
        out += s;
    }
    template <class Item>
    void list(std::vector<Item>& items) {
        number(static_cast<std::uint32_t>(items.size()));
        for (auto& item : items) {
            if constexpr (std::is_arithmetic_v<Item>)
                number(item);
            else if constexpr (std::is_same_v<Item, std::string>)
                text(item);
            else
                fields(*this, item);
        }
    }
    std::string out;
};

class field_reader {
  public:
    explicit field_reader(std::string_view in) : in_(in) {}
    template <class Number>
    void number(Number& n) {
        if (in_.size() < sizeof n) return fail_short();
        if constexpr (std::is_same_v<Number, bool>)
            n = in_[0] != 0;
        else
            std::memcpy(&n, in_.data(), sizeof n);
        in_.remove_prefix(sizeof n);
    }
    void text(std::string& s) {
        std::uint32_t size = 0;
        number(size);
        if (in_.size() < size) return fail_short();
        s.assign(in_.substr(0, size));
        disarm(s);
        in_.remove_prefix(size);
    }
    template <class Item>
    void list(std::vector<Item>& items) {
        std::uint32_t size = 0;
        number(size);
        // Every item takes at least one byte, so a hostile count cannot ask for more memory than a multiple
        // of the file.
        if (in_.size() < size) return fail_short();
        items.reserve(size);
        for (std::uint32_t i = 0; i < size && good_; ++i) {
            auto& item = items.emplace_back();
            if constexpr (std::is_arithmetic_v<Item>)
                number(item);
            else if constexpr (std::is_same_v<Item, std::string>)
                text(item);
            else
                fields(*this, item);
        }
    }
    bool complete() const { return good_ && in_.empty(); }

  private:
    void fail_short() {
        good_ = false;
        in_ = {};
    }
    std::string_view in_;
    bool good_ = true;
};

bool within(std::uint32_t index, std::size_t size) { return index == none || index < size; }
bool all_within(const std::vector<std::uint32_t>& indices, std::size_t size) {
    for (const auto i : indices)
        if (i >= size) return false;
    return true;
}
bool good_end(const fabric& f, const port_ref& p) {
    return p.kind == node_kind::switch_node ? p.index < f.switches.size()
                                            : p.kind == node_kind::hca && p.index < f.hcas.size();
}

bool consistent(const fabric& f) {
    for (const auto& m : f.managers)
        if (m.state > subnet_manager::role::master) return false;
    for (const auto& h : f.hcas)
        if (!within(h.host, f.hosts.size()) || !within(h.leaf, f.switches.size())) return false;
    for (const auto& sw : f.switches)
        if (sw.box >= f.switches.size()) return false;
    for (const auto& l : f.links)
        if (!good_end(f, l.a) || !good_end(f, l.b)) return false;
    for (std::size_t i = 0; i < f.hosts.size(); ++i) {
        const auto& h = f.hosts[i];
        if (!within(h.leaf_group, f.leaf_groups.size()) || !all_within(h.hcas, f.hcas.size())) return false;
        if (i > 0 && !before_by_number(f.hosts[i - 1].name, h.name))
            return false;  // find_host relies on the order
    }
    for (const auto& g : f.leaf_groups)
        if (g.rails.size() != g.leaves.size() || !all_within(g.leaves, f.switches.size()) ||
            !all_within(g.hosts, f.hosts.size()))
            return false;
    return true;
}

std::unexpected<error> damaged(const std::string& how) {
    return fail(errc::invalid_input, "the fabric snapshot is damaged: " + how,
                "write it again with banyan-topo snapshot");
}

}  // namespace

bool is_snapshot(std::string_view bytes) { return bytes.starts_with(magic); }

std::string encode_snapshot(const fabric& f) {
    field_writer w;
    // About what it takes; names are short.
    w.out.reserve(head_bytes + 96 * f.hcas.size() + 24 * f.links.size() + 128 * f.switches.size());
    w.out.assign(head_bytes, '\0');
    fields(w,
           const_cast<fabric&>(f));  // the writer only reads; one description of the fields serves both ways
    const auto payload = std::string_view(w.out).substr(head_bytes);
    const auto crc = crc32c(std::as_bytes(std::span(payload)));
    const std::uint64_t size = payload.size();
    std::memcpy(w.out.data(), magic.data(), magic.size());
    std::memcpy(w.out.data() + 8, &version, 4);
    std::memcpy(w.out.data() + 12, &crc, 4);
    std::memcpy(w.out.data() + 16, &size, 8);
    return std::move(w.out);
}

result<fabric> decode_snapshot(std::string_view bytes) {
    if (!is_snapshot(bytes)) return damaged("it does not begin as one");
    if (bytes.size() < head_bytes) return damaged("it is cut in its head");
    std::uint32_t its_version = 0, crc = 0;
    std::uint64_t size = 0;
    std::memcpy(&its_version, bytes.data() + 8, 4);
    std::memcpy(&crc, bytes.data() + 12, 4);
    std::memcpy(&size, bytes.data() + 16, 8);
    if (its_version != version)
        return damaged(fmt::format("it has format {}, expected {}", its_version, version));
    const auto payload = bytes.substr(head_bytes);
    if (payload.size() != size)
        return damaged(fmt::format("it has {} bytes, expected {}", payload.size(), size));
    if (crc32c(std::as_bytes(std::span(payload))) != crc) return damaged("its checksum is wrong");
    fabric f;
    field_reader r(payload);
    fields(r, f);
    if (!r.complete()) return damaged("its lists do not fill it");
    if (!consistent(f)) return damaged("an index points outside its list");
    f.tier_cost = tier_costs(f);
    mark_slow_hosts(f);
    return f;
}

result<void> save_snapshot(const fabric& f, const std::filesystem::path& path) {
    return write_file_atomic(path, encode_snapshot(f));
}

result<fabric> load_snapshot(const std::filesystem::path& path) {
    BANYAN_TRY(const auto bytes, read_file(path, max_snapshot_bytes));
    auto f = decode_snapshot(bytes);
    if (!f) return fail(f.error().code, fmt::format("{}: {}", path.string(), f.error().what), f.error().hint);
    return f;
}

}  // namespace banyan::topo
