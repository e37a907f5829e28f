// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "common/plugstack_arguments.hpp"

namespace test_plugstack_arguments {

using namespace banyan;

TEST_CASE("what the SPANK plugin takes of its line, and what it ignores", "[common]") {
    const std::vector<std::string> words{"config=/x/a=b.conf", "confg=/y", "ckptd=/z", "loud"};
    const auto read = plugstack_arguments::from(words);
    CHECK(read.config == "/x/a=b.conf");
    CHECK(read.program() == "/z");
    CHECK(read.ckptd_log == "/var/log/banyan/ckptd.log");
    CHECK(read.ignored == std::vector<std::string>{"confg=/y", "loud"});
    CHECK(plugstack_hint("confg=/y") == "did you mean config=?");
    CHECK(plugstack_hint("zzzzzzzz").find("known are") != std::string::npos);
    CHECK(plugstack_arguments::from({}).program() == plugstack_arguments::installed_daemon());
    const std::vector<std::string> none{"ckptd_log="};
    CHECK(plugstack_arguments::from(none).ckptd_log.empty());
}

}  // namespace test_plugstack_arguments
