// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>

#include "fault/catalog/xid.hpp"

namespace test_catalog {

using namespace banyan::fault::catalog;

TEST_CASE("the table knows the numbers that decide", "[fault]") {
    CHECK(find_xid(79)->bucket == bucket::restart_node);
    for (const unsigned code :
         {46u, 62u, 64u, 95u, 109u, 110u, 119u, 120u, 136u, 140u, 143u, 155u, 156u, 158u})
        CHECK(find_xid(code)->bucket == bucket::reset_gpu);
    for (const unsigned code : {13u, 31u, 94u}) CHECK(find_xid(code)->bucket == bucket::restart_app);
    for (const unsigned code : {43u, 63u, 92u}) CHECK(find_xid(code)->bucket == bucket::ignore);
    CHECK(find_xid(45)->bucket == bucket::cleanup);
    CHECK(find_xid(48)->bucket == bucket::ecc_double);
    CHECK(find_xid(154)->bucket == bucket::verdict);
    CHECK(find_xid(79)->verdict_follows);
    CHECK_FALSE(find_xid(119)->verdict_follows);
    CHECK(find_xid(0) == nullptr);
    CHECK(find_xid(100'000) == nullptr);
}

}  // namespace test_catalog
