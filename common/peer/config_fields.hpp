// SPDX-License-Identifier: BSD-3-Clause
//
// [munge] and [peers] of banyan.conf, which each daemon reads beside its own table: how daemons prove to each
// other who they are, and whether others can read what they say. Fields as common/config.hpp wants them.
#pragma once

namespace banyan::peer {

template <class Section, class Settings>
void munge_fields(Section& section, Settings& s) {
    section.field("socket", s.munge_socket);
}

template <class Section, class Settings>
void peers_fields(Section& section, Settings& s) {
    section.field("encrypt", s.encrypt);
}

}  // namespace banyan::peer
