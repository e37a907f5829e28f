// SPDX-License-Identifier: BSD-3-Clause
//
// What the checks look at, gathered once: this host, banyan's configuration and the site's Slurm. The checks
// themselves only judge.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "ckptd/daemon/settings.hpp"
#include "common/result.hpp"
#include "doctor/finding.hpp"
#include "doctor/slurm.hpp"
#include "fault/config.hpp"

namespace banyan::doctor {

/// What a host is for; one can be several.
struct roles {
    bool controller = false;  ///< runs slurmctld
    bool compute = false;     ///< is a node of slurm.conf
    bool fabric = false;      ///< runs opensm
    bool login = false;       ///< none of these: users submit here

    std::vector<std::string> names() const;
};

struct site {
    std::string node;  ///< NodeName of this host where it is one, else its short host name
    roles is;
    std::filesystem::path config_path;  ///< empty: there is no banyan.conf, all defaults
    result<fault::config> fault;
    result<ckpt::settings> ckptd;
    result<std::chrono::milliseconds> max_age;  ///< of the snapshot; 0 = any
    slurm_view slurm;
};

struct site_options {
    std::string config;              ///< banyan.conf
    std::string node;                ///< empty: this host
    std::vector<std::string> roles;  ///< empty: found out
};

/// Asks Slurm and reads banyan.conf. What cannot be had is an error in its place.
site look(const site_options& asked);

// Each judges one subject, on hosts of the roles that it concerns.
findings check_configuration(const site& s);  ///< banyan.conf itself
findings check_slurm(const site& s);          ///< slurm.conf
findings check_plugins(const site& s);        ///< the three objects, their versions, plugstack.conf
findings check_snapshot(const site& s);       ///< its age, its reader, the nodes that it lacks
findings check_munge(const site& s);
findings check_ports(const site& s);        ///< that others can be reached
findings check_daemons(const site& s);      ///< that they answer
findings check_memory(const site& s);       ///< ckptd's share of the node
findings check_gpus(const site& s);         ///< that ranks can use them, and save from them
findings check_directories(const site& s);  ///< that they are there, and nobody else's
findings check_opensm(const site& s);       ///< that its log is written at once

}  // namespace banyan::doctor
