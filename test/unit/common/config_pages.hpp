// SPDX-License-Identifier: BSD-3-Clause
//
// What people read of config_keys(): the sample and the list in the manual page.
#pragma once

#include <string>

namespace banyan::test {

std::string sample_config();
/// docs/man/banyan.conf.5 below `root` with its list of tables replaced.
std::string config_manual(const std::string& root);

}  // namespace banyan::test
