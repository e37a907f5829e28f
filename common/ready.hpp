// SPDX-License-Identifier: BSD-3-Clause
//
// Tells the service manager that a daemon answers from now on (sd_notify(3), Type=notify in the units), so
// that what is started after it finds its sockets. Without a service manager it does nothing.
#pragma once

namespace banyan {

/// To be called once, when everything listens. What cannot be sent is only logged: the daemon works.
void tell_ready();

}  // namespace banyan
