// SPDX-License-Identifier: BSD-3-Clause
//
// Links of an Omni-Path fabric. opareport -o links has two lines for each:
//
//     100g 0x0011750101747a3c         1 FI   n102 hfi1_0
//     <->  0x00117501020d8282        16 SW   edge01
//
// and opaextractsellinks one, without the rate:
//
//     0x0011750101747a3c;1;FI;n102 hfi1_0;0x00117501020d8282;16;SW;edge01
//
// Each chip of a director is a switch of its own: "opa1 L113B" of a leaf, "opa1 S201B" of a spine.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "topo/readers/cursor.hpp"
#include "topo/readers/node_table.hpp"
#include "topo/readers/records.hpp"

namespace banyan::topo {
namespace {

constexpr std::string_view heading = "Rate NodeGUID";

struct opa_end {
    guid id = 0;
    std::uint16_t port = 0;
    node_kind kind = node_kind::hca;
    std::string_view name;
};

/// Takes GUID, port and type; `skip` takes what stands between them. The caller takes the name.
template <class Skip>
std::optional<opa_end> take_end(cursor& c, Skip skip) {
    opa_end out;
    if (!c.skip("0x")) return std::nullopt;
    const auto id = c.number<guid>(16);
    skip(c);
    const auto port = c.number<std::uint16_t>();
    skip(c);
    if (c.skip("SW"))
        out.kind = node_kind::switch_node;
    else if (!c.skip("FI"))
        return std::nullopt;
    skip(c);
    if (!id || *id == 0 || !port) return std::nullopt;
    out.id = *id;
    out.port = *port;
    return out;
}

class omni_path_reader {
  public:
    explicit omni_path_reader(dump& out) : out_(out), nodes_(out) {}

    void take(std::uint32_t number, std::string_view line) {
        cursor c(line);
        c.blanks();
        if (c.rest().starts_with("0x")) return take_list(number, c);
        if (c.skip("<->")) return take_second(number, c);
        if (const auto rate = c.number<std::uint32_t>()) {
            if (c.rest().starts_with(" Links in Fabric")) announced_ = *rate;
            if (c.skip("g ")) take_first(number, c, *rate);
        }
    }

    result<void> finish() {
        nodes_.finish();
        out_.untold.rates = !rates_;
        if (out_.nodes.empty() || links_ + links_ / 4 >= announced_) {
            if (links_ < announced_) complain(out_, 1, 1, counts());
            return {};
        }
        return fail(errc::invalid_input, "the list of links is cut: " + counts(),
                    "run opareport -o links again and keep its whole output");
    }

  private:
    std::string counts() const {
        return fmt::format("opareport announces {} links, and {} stand in the text", announced_, links_);
    }

    void take_list(std::uint32_t number, cursor& c) {
        const auto separator = [](cursor& at) { at.skip(";"); };
        const auto a = take_end(c, separator);
        const auto a_name = a ? c.until(';') : std::nullopt;
        const auto b = a_name ? take_end(c, separator) : std::nullopt;
        if (!b) return complain(out_, number, c.column(), "a link is not readable; it is skipped");
        auto first = *a, second = *b;
        first.name = *a_name;
        second.name = c.rest().substr(0, c.rest().find(';'));
        join(number, first, second, {});
    }

    void take_first(std::uint32_t number, cursor& c, std::uint32_t rate) {
        first_ = take_spaced(number, c);
        // Omni-Path has four lanes; a link with fewer says so by its rate.
        rate_ = {4, static_cast<std::uint16_t>(std::min<std::uint32_t>(rate * 10 / 4, UINT16_MAX))};
    }

    void take_second(std::uint32_t number, cursor& c) {
        const auto second = take_spaced(number, c);
        if (first_ && second) {
            rates_ = true;
            join(number - 1, *first_, *second, rate_);
        } else if (second) {
            complain(out_, number, 1, "a link's first end is not readable; the link is skipped");
        }
        first_.reset();
    }

    std::optional<opa_end> take_spaced(std::uint32_t number, cursor& c) {
        c.blanks();
        auto out = take_end(c, [](cursor& at) { at.blanks(); });
        if (!out) {
            complain(out_, number, c.column(), "an end of a link is not readable; the link is skipped");
            return out;
        }
        out->name = c.rest();
        return out;
    }

    void join(std::uint32_t line, const opa_end& a, const opa_end& b, link_rate rate) {
        ++links_;
        nodes_.add_link(node(line, a), a.port, node(line, b), b.port, rate);
    }
    std::uint32_t node(std::uint32_t line, const opa_end& e) {
        const auto at = nodes_.node(e.id, line);
        nodes_[at].kind = e.kind;
        nodes_[at].name = e.name;
        return at;
    }

    dump& out_;
    node_table nodes_;
    std::optional<opa_end> first_;
    link_rate rate_;
    std::size_t links_ = 0, announced_ = 0;
    bool rates_ = false;
};

}  // namespace

bool is_omni_path(std::string_view text) {
    return any_early_line(text, [](std::string_view line) {
        return line.find(heading) != std::string_view::npos ||
               (line.starts_with("0x") &&
                (line.find(";FI;") != line.npos || line.find(";SW;") != line.npos) &&
                line.find(";0x") != line.npos);
    });
}

result<void> read_omni_path(std::string_view text, dump& out) {
    omni_path_reader r(out);
    for_each_line(text, [&](std::uint32_t number, std::string_view line) { r.take(number, line); });
    return r.finish();
}

}  // namespace banyan::topo
