// SPDX-License-Identifier: BSD-3-Clause
//
// The same fabric as other tools print it.
#pragma once

#include <string>

#include <banyan/topo/reader.hpp>

namespace banyan::topo::test {

/// ibdiagnet2.db_csv, with what is given between its sections.
std::string as_db_csv(const dump& d, const std::string& more = "");
/// ibdiagnet2.lst; `both`: each cable from both its ends.
std::string as_link_list(const dump& d, bool both = false);
/// ibnetdiscover -p, with a line for a port that is down at each switch.
std::string as_port_list(const dump& d);
/// iblinkinfo, with a line for a port that is down at each switch; `lines`: as with -l.
std::string as_link_info(const dump& d, bool lines);

}  // namespace banyan::topo::test
