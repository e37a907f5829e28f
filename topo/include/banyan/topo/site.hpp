// SPDX-License-Identifier: BSD-3-Clause
//
// What only the site knows and no fabric tool prints: racks and power, what leads to storage, NVLink domains,
// links to other sites. A TOML file:
//
//     [compute]
//     hosts = "sm[001-512]"         # whatever they look like
//     [management]
//     hosts = "ufm[1-2]"
//     [storage]
//     hosts = "oss[01-16]"
//     devices = ["mlx5_8"]          # HCAs of compute nodes that lead to storage
//     [[failure_domain]]
//     kind = "rack"
//     name = "r12"
//     hosts = "gpu[0001-0008]"
//     [[nvlink_domain]]
//     name = "rack-3"
//     hosts = "gpu[0001-0018]"
//     [nvlink]
//     domains = "/var/lib/banyan/nvlink-domains"  # lines of a node and its domain, or "-" where it has none
//     [slurm]
//     blocks = "nvlink-domain"      # what a block of topology.conf is; leaf-group if not said
//     [[wan]]
//     sites = ["gpu[0001-0512]", "gpu[0513-1024]"]
//     gbps = 800
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

namespace banyan::topo {

struct named_hosts {
    std::string kind;  ///< of a failure domain: "rack", "pdu", ...; else empty
    std::string name;
    std::vector<std::string> hosts;
};

struct wan_description {
    std::vector<std::string> a, b;  ///< hosts of either site
    double gbps = 0;
};

struct site_description {
    std::vector<std::string> compute_hosts;  ///< whatever they look like
    std::vector<std::string> management_hosts;
    std::vector<std::string> storage_hosts;
    /// "mlx5_8"; where the file does not say, they are told by where they lead
    std::optional<std::vector<std::string>> storage_devices;
    std::vector<named_hosts> failure_domains;
    std::vector<named_hosts> nvlink_domains;
    std::string nvlink_domain_file;  ///< of [nvlink]; empty: none
    /// What that file tells, by node; an empty domain: it has none. A node that the file lacks was not asked.
    std::map<std::string, std::string> nvlink_domain_of;
    bool blocks_are_nvlink_domains = false;  ///< of topology/block, where that is the source of the fabric
    std::vector<wan_description> wan;
};

/// `name` of the file is for messages. Unknown keys, wrong types and unreadable host lists are errors.
result<site_description> read_site(std::string_view text, const std::string& name);

/// What `banyan-fault agents --nvlink-domains` prints: lines of a node and its domain, or "-".
result<std::map<std::string, std::string>> read_nvlink_domains(std::string_view text);

}  // namespace banyan::topo
