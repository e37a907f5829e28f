// SPDX-License-Identifier: BSD-3-Clause
// Catch2 v3 (Debian 13), as tests that are written for v2 (Debian 12) include and name it.
#pragma once

#include <catch2/catch_all.hpp>

using Catch::Approx;
