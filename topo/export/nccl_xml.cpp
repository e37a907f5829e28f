// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/nccl_xml.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "topo/export/affinity.hpp"

namespace banyan::topo {
namespace {

constexpr std::size_t longest_value = 255;

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (out.size() + 6 > longest_value) break;
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out +=
                    static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f ? '?' : c;
        }
    }
    return out;
}

/// The kernel's name for the architecture -> NCCL's; empty where NCCL knows none.
std::string architecture(const std::string& kernel) {
    if (kernel == "x86_64") return "x86_64";
    if (kernel == "aarch64") return "arm64";
    if (kernel.starts_with("ppc64")) return "ppc64";
    return {};
}

class writer {
  public:
    writer(const machine& m, const node_type& type) : m_(m), type_(type) {}

    std::string text() {
        for (std::uint32_t cpu = 0; cpu < m_.cpus.size(); ++cpu) {
            if (std::none_of(m_.devices.begin(), m_.devices.end(),
                             [&](const auto& d) { return d.cpu == cpu; }))
                continue;
            const auto& c = m_.cpus[cpu];
            out_ += fmt::format("  <cpu numaid=\"{}\"", c.numa);
            attribute("affinity", c.affinity.size() <= longest_value ? c.affinity : "");
            attribute("arch", architecture(m_.architecture));
            attribute("vendor", c.vendor);
            attribute("familyid", c.family);
            attribute("modelid", c.model);
            out_ += ">\n";
            for (std::uint32_t i = 0; i < m_.devices.size(); ++i)
                if (m_.devices[i].cpu == cpu && m_.devices[i].parent == UINT32_MAX) write(i, 4);
            out_ += "  </cpu>\n";
        }
        return std::move(out_);
    }

  private:
    void attribute(const char* name, const std::string& value) {
        if (!value.empty()) out_ += fmt::format(" {}=\"{}\"", name, escaped(value));
    }

    void write(std::uint32_t index, int indent) {
        const auto& d = m_.devices[index];
        const auto link = link_of(d.gbytes_per_s);
        out_ += fmt::format(
            "{:{}}<pci busid=\"{}\" class=\"0x{:04x}00\" vendor=\"0x{:04x}\" device=\"0x{:04x}\" "
            "subsystem_vendor=\"0x{:04x}\" subsystem_device=\"0x{:04x}\" link_speed=\"{}\" link_width=\"{}\"",
            "", indent, d.busid, d.pci_class, d.vendor, d.device, d.subsystem_vendor, d.subsystem_device,
            link.speed, link.width);
        if (d.kind == io_kind::gpu) {
            out_ += "/>\n";
            return;
        }
        out_ += ">\n";
        if (d.kind == io_kind::hca) {
            write_nets(d, indent + 2);
        } else {
            for (auto i = index + 1; i < m_.devices.size(); ++i)
                if (m_.devices[i].parent == index) write(i, indent + 2);
        }
        out_ += fmt::format("{:{}}</pci>\n", "", indent);
    }

    void write_nets(const io_device& d, int indent) {
        out_ += fmt::format("{:{}}<nic>\n", "", indent);
        for (const auto& r : type_.devices) {
            if (r.device.empty() || std::find(d.names.begin(), d.names.end(), r.device) == d.names.end())
                continue;
            out_ +=
                fmt::format("{:{}}<net name=\"{}\" port=\"{}\"", "", indent + 2, escaped(r.device), r.port);
            if (r.gbps > 0) out_ += fmt::format(" speed=\"{}\"", r.gbps * 1000ull);  // in Mbit/s
            out_ += "/>\n";
        }
        out_ += fmt::format("{:{}}</nic>\n", "", indent);
    }

    const machine& m_;
    const node_type& type_;
    std::string out_;
};

}  // namespace

pcie_link link_of(double gbytes_per_s) {
    struct generation {
        const char* speed;
        double lane;  // GB/s: 8b/10b up to the second, 128b/130b up to the fifth, 242 of 256 bytes of a flit
                      // after it
    };
    constexpr generation known[] = {{"2.5 GT/s PCIe", 0.25},
                                    {"5.0 GT/s PCIe", 0.5},
                                    {"8.0 GT/s PCIe", 128. / 130},
                                    {"16.0 GT/s PCIe", 2 * 128. / 130},
                                    {"32.0 GT/s PCIe", 4 * 128. / 130},
                                    {"64.0 GT/s PCIe", 8 * 242. / 256}};
    pcie_link best;
    if (!(gbytes_per_s > 0)) return best;
    double least = INFINITY;
    for (const unsigned width : {16u, 8u, 4u, 2u, 1u})
        for (const auto& g : known) {
            const auto off = std::abs(g.lane * width - gbytes_per_s) / gbytes_per_s;
            // A narrower link must fit clearly better: the figures of one product differ in the last digits.
            if (off < least - 0.02) {
                least = off;
                best = {g.speed, width};
            }
        }
    return best;
}

std::string nccl_topology_xml(const machine& whole, const node_type& type, std::uint32_t source_crc) {
    const auto m = prune(whole, devices_of(type));
    return fmt::format(
        "<!-- Written by banyan-topo nccl; rails from the fabric dump with CRC-32C 0x{:08x}. -->\n"
        "<system version=\"1\">\n{}</system>\n",
        source_crc, writer(m, type).text());
}

}  // namespace banyan::topo
