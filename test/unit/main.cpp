// SPDX-License-Identifier: BSD-3-Clause
#define CATCH_CONFIG_MAIN
#include <iostream>

#include <catch2/catch.hpp>

namespace {

#if CATCH_VERSION_MAJOR >= 3
using listener = Catch::EventListenerBase;
const std::string& name_of(const Catch::TestCaseStats& stats) { return stats.testInfo->name; }
#else
using listener = Catch::TestEventListenerBase;
const std::string& name_of(const Catch::TestCaseStats& stats) { return stats.testInfo.name; }
#endif

/// Names each failed case on a line of its own, as Catch's command line takes it: scripts/test tells how to
/// run it alone.
class failed_cases : public listener {
  public:
    using listener::listener;

    void testCaseEnded(const Catch::TestCaseStats& ended) override {
        if (ended.totals.assertions.allOk()) return;
        std::string name;
        for (const char c : name_of(ended)) {
            if (c == ',' || c == '[') name += '\\';
            name += c;
        }
        std::cout << "\nfailed case: " << name << std::endl;
    }
};

CATCH_REGISTER_LISTENER(failed_cases)

}  // namespace

#if CATCH_VERSION_MAJOR >= 3
int main(int argc, char** argv) { return Catch::Session().run(argc, argv); }
#endif
