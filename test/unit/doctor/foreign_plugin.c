// SPDX-License-Identifier: BSD-3-Clause
const char plugin_name[] = "of another release";
const char plugin_type[] = "spank";
const unsigned int plugin_version = 0x180b05;  // 24.11.5
