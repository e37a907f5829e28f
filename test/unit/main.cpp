// SPDX-License-Identifier: BSD-3-Clause
#define CATCH_CONFIG_MAIN
#include <iostream>

#include <catch2/catch.hpp>

namespace {

/// Names each failed case on a line of its own, as Catch's command line takes it: scripts/test tells how to
/// run it alone.
class failed_cases : public Catch::TestEventListenerBase {
  public:
    using TestEventListenerBase::TestEventListenerBase;

    void testCaseEnded(const Catch::TestCaseStats& ended) override {
        if (ended.totals.assertions.allOk()) return;
        std::string name;
        for (const char c : ended.testInfo.name) {
            if (c == ',' || c == '[') name += '\\';
            name += c;
        }
        std::cout << "\nfailed case: " << name << std::endl;
    }
};

CATCH_REGISTER_LISTENER(failed_cases)

}  // namespace
