// SPDX-License-Identifier: BSD-3-Clause
#include "topo/export/nccl_xml.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <tinyxml2.h>

#include "topo/export/affinity.hpp"

namespace banyan::topo {
namespace {

constexpr std::size_t longest_value = 255;

/// Bytes of a character once the writer has escaped it.
std::size_t written_size(char c) {
    switch (c) {
        case '<':
        case '>':
            return 4;
        case '&':
            return 5;
        case '"':
        case '\'':
            return 6;
        default:
            return 1;
    }
}

/// ASCII that can be printed, no longer than NCCL reads.
std::string fit_value(std::string_view text) {
    std::string out;
    std::size_t size = 0;
    for (const char c : text) {
        if (size + 6 > longest_value) break;
        const auto byte = static_cast<unsigned char>(c);
        out += byte < 0x20 || byte >= 0x7f ? '?' : c;
        size += written_size(out.back());
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

class writer : private tinyxml2::XMLPrinter {
  public:
    writer(const machine& m, const node_type& type) : m_(m), type_(type) {}

    std::string text(const std::string& comment) {
        PushComment(comment.c_str());
        OpenElement("system");
        PushAttribute("version", 1);
        for (std::uint32_t cpu = 0; cpu < m_.cpus.size(); ++cpu)
            if (std::any_of(m_.devices.begin(), m_.devices.end(),
                            [&](const auto& d) { return d.cpu == cpu; }))
                write_cpu(cpu);
        CloseElement();
        return CStr();
    }

  private:
    void PrintSpace(int depth) override {
        for (; depth > 0; --depth) Write("  ");
    }

    void attribute(const char* name, const std::string& value) {
        if (!value.empty()) PushAttribute(name, fit_value(value).c_str());
    }

    void write_cpu(std::uint32_t cpu) {
        const auto& c = m_.cpus[cpu];
        OpenElement("cpu");
        PushAttribute("numaid", c.numa);
        attribute("affinity", c.affinity.size() <= longest_value ? c.affinity : "");
        attribute("arch", architecture(m_.architecture));
        attribute("vendor", c.vendor);
        attribute("familyid", c.family);
        attribute("modelid", c.model);
        for (std::uint32_t i = 0; i < m_.devices.size(); ++i)
            if (m_.devices[i].cpu == cpu && m_.devices[i].parent == UINT32_MAX) write_device(i);
        CloseElement();
    }

    void write_device(std::uint32_t index) {
        const auto& d = m_.devices[index];
        const auto link = link_of(d.gbytes_per_s);
        OpenElement("pci");
        PushAttribute("busid", d.busid.c_str());
        PushAttribute("class", fmt::format("0x{:04x}00", d.pci_class).c_str());
        PushAttribute("vendor", fmt::format("0x{:04x}", d.vendor).c_str());
        PushAttribute("device", fmt::format("0x{:04x}", d.device).c_str());
        PushAttribute("subsystem_vendor", fmt::format("0x{:04x}", d.subsystem_vendor).c_str());
        PushAttribute("subsystem_device", fmt::format("0x{:04x}", d.subsystem_device).c_str());
        PushAttribute("link_speed", link.speed.c_str());
        PushAttribute("link_width", link.width);
        if (d.kind == io_kind::hca) {
            write_nets(d);
        } else if (d.kind != io_kind::gpu) {
            for (auto i = index + 1; i < m_.devices.size(); ++i)
                if (m_.devices[i].parent == index) write_device(i);
        }
        CloseElement();
    }

    void write_nets(const io_device& d) {
        OpenElement("nic");
        for (const auto& r : type_.devices) {
            if (r.device.empty() || std::find(d.names.begin(), d.names.end(), r.device) == d.names.end())
                continue;
            OpenElement("net");
            attribute("name", r.device);
            PushAttribute("port", r.port);
            if (r.gbps > 0) PushAttribute("speed", std::uint64_t{r.gbps} * 1000);  // in Mbit/s
            CloseElement();
        }
        CloseElement();
    }

    const machine& m_;
    const node_type& type_;
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
    return writer(m, type).text(fmt::format(
        " Written by banyan-topo nccl; rails from the fabric dump with CRC-32C 0x{:08x}. ", source_crc));
}

}  // namespace banyan::topo
