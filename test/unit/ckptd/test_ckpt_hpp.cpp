// SPDX-License-Identifier: BSD-3-Clause
//
// The C++ wrapper, compiled for C++20 and for C++23: what it hands to the C functions, and what it owns.
#include <vector>

#include <banyan/ckpt.hpp>
#include <catch2/catch.hpp>

namespace {

struct plain {
    int a, b;
};

}  // namespace

TEST_CASE("each kind of number has its dtype", "[wrapper]") {
    const auto is = [](const char* a, std::string_view b) { return a == b; };
    using namespace bck::detail;
    CHECK(is(dtype_of<float>(), "F32"));
    CHECK(is(dtype_of<double>(), "F64"));
    CHECK(is(dtype_of<bool>(), "BOOL"));
    CHECK(is(dtype_of<std::byte>(), "U8"));
    CHECK(is(dtype_of<unsigned char>(), "U8"));
    CHECK(is(dtype_of<std::int8_t>(), "I8"));
    CHECK(is(dtype_of<std::uint16_t>(), "U16"));
    CHECK(is(dtype_of<std::int32_t>(), "I32"));
    CHECK(is(dtype_of<std::uint64_t>(), "U64"));
    CHECK(is(dtype_of<long long>(), "I64"));
#ifdef __STDCPP_FLOAT16_T__
    CHECK(is(dtype_of<std::float16_t>(), "F16"));
#endif
#ifdef __STDCPP_BFLOAT16_T__
    CHECK(is(dtype_of<std::bfloat16_t>(), "BF16"));
#endif
}

TEST_CASE("regions of every form are taken, and what does not fit is told", "[wrapper]") {
    bck::session session("1", 0, 1);
    REQUIRE_FALSE(session.opened());
    CHECK(session.opened().error().code == BCK_E_NODAEMON);
    std::vector<float> weights(12);
    std::vector<plain> structs(2);
    int step = 0;
    const std::vector<std::uint64_t> shape{3, 4}, wrong{3, 5}, global{6, 4}, offset{3, 0};
    CHECK(session.protect("row", std::span(weights)));
    CHECK(session.protect("weights", std::span(weights), shape));
    CHECK(session.protect("step", step));
    CHECK(session.protect("none", std::span<double>()));
    CHECK(session.protect_bytes("structs", std::span(structs)));
    CHECK(session.protect_piece("piece", std::span(weights), shape, global, offset));
    CHECK(session.protect_piece("scalar", std::span(weights).first(1), {}, {}, {}));
    const auto refused = session.protect("weights", std::span(weights), wrong);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == BCK_E_INVALID);
    CHECK(refused.error().text == "region \"weights\": it has 48 bytes, but its shape and dtype say 60");
    CHECK_FALSE(session.protect_piece("piece", std::span(weights), shape, global, wrong));
    CHECK_FALSE(session.protect_piece("piece", std::span(weights), shape, global, {}));
    CHECK(session.unprotect("row"));
    CHECK_FALSE(session.unprotect("row"));
}

TEST_CASE("a scoped region is withdrawn when its protection goes, once", "[wrapper]") {
    bck::session session("1", 0, 1);
    std::vector<float> weights(12);
    {
        auto kept = session.protect_scoped("w", std::span(weights));
        REQUIRE(kept);
        bck::protection moved = std::move(*kept);
        CHECK(moved.name() == "w");
        CHECK_FALSE(session.protect_scoped("__w", std::span(weights)));
        auto other = session.protect_scoped("x", std::span(weights));
        REQUIRE(other);
        moved = std::move(*other);
        CHECK_FALSE(session.unprotect("w"));
    }
    CHECK_FALSE(session.unprotect("x"));
}

TEST_CASE("regions for one call are listed, and the list is filled again without allocating", "[wrapper]") {
    std::vector<float> weights(12);
    std::vector<plain> structs(2);
    int step = 0;
    const std::vector<std::uint64_t> shape{3, 4}, global{6, 4}, offset{3, 0};
    bck::tensors list;
    const auto fill = [&] {
        list.clear();
        list.add("row", std::span(weights));
        list.add("weights", std::span(weights), shape);
        list.add("step", step);
        CHECK(list.add_piece("a piece with a name that does not fit into a short string", std::span(weights),
                             shape, global, offset));
        CHECK(list.add_piece("scalar", std::span(weights).first(1), {}, {}, {}));
        list.add_bytes("structs", std::span(structs));
        list.add_protected("kept");
    };
    fill();
    CHECK_FALSE(list.add_piece("short", std::span(weights), shape, global, {}));
    REQUIRE(list.size() == 7);
    const auto* at = list.data();
    CHECK(at[0].name == std::string("row"));
    CHECK(at[0].ptr == weights.data());
    CHECK((at[0].bytes == 48 && at[0].ndim == 1 && at[0].shape[0] == 12 && !at[0].global_shape));
    CHECK((at[1].ndim == 2 && at[1].shape[1] == 4));
    CHECK((at[2].ndim == 0 && at[2].dtype == std::string("I32")));
    CHECK((at[3].global_shape[0] == 6 && at[3].offset[0] == 3 && at[3].offset[1] == 0));
    CHECK((at[4].ndim == 0 && at[4].global_shape && at[4].offset));
    CHECK((at[5].dtype == std::string("U8") && at[5].bytes == sizeof(plain) * 2));
    CHECK((at[6].dtype == nullptr && at[6].name == std::string("kept")));
    fill();
    CHECK(list.data() == at);
    bck::session session("1", 0, 1);
    CHECK(session.checkpoint(1, list).error().code == BCK_E_NODAEMON);
    CHECK(session.restart(list).error().code == BCK_E_NODAEMON);
}

TEST_CASE("a second state has regions of its own, and ends with the session", "[wrapper]") {
    bck::session session("1", 0, 1);
    auto ema = session.open("ema");
    REQUIRE(ema);
    int step = 0;
    CHECK(ema->protect("step", step));
    CHECK_FALSE(session.unprotect("step"));
    CHECK(session.open("ema")->unprotect("step"));  // it is the same
    {
        auto kept = ema->protect_scoped("step", step);
        REQUIRE(kept);
        CHECK_FALSE(session.unprotect("step"));
    }
    CHECK_FALSE(ema->unprotect("step"));
    CHECK(ema->protect("step", step));
    CHECK(ema->checkpoint(1).error().code == BCK_E_NODAEMON);
    CHECK(ema->restart().error().code == BCK_E_NODAEMON);
    CHECK(ema->restart_query().error().code == BCK_E_NODAEMON);
    CHECK(ema->stat().error().code == BCK_E_NODAEMON);
    CHECK(ema->wait(1, bck::level::memory, std::chrono::seconds(0)).error().code == BCK_E_NODAEMON);
    CHECK(session.open("Ema").error().text.find("is no name of a state") != std::string::npos);
    CHECK(session.finalize(false));
    CHECK(ema->checkpoint(1).error().text == "the state is not open: bck_open");
    CHECK(session.open("ema").error().text == "bck_init was not called");
}

TEST_CASE("no checkpoint is a result, no daemon is an error", "[wrapper]") {
    bck::session session("1", 0, 1);
    int step = 0;
    CHECK(session.protect("step", step));
    CHECK(session.restart().error().code == BCK_E_NODAEMON);
    CHECK(session.restart_query().error().code == BCK_E_NODAEMON);
    CHECK(session.stat().error().code == BCK_E_NODAEMON);
    CHECK(session.checkpoint(1).error().code == BCK_E_NODAEMON);
    CHECK(session.wait(1, bck::level::memory, std::chrono::hours(10'000)).error().code == BCK_E_NODAEMON);
    const bck::contents none(nullptr);
    CHECK(none.size() == 0);
    CHECK(none[0].name.empty());
    CHECK_FALSE(none.find("step"));
    CHECK(session.finalize(false));
    CHECK(session.checkpoint(1).error().text == "bck_init was not called");
    bck::session again("1", 0, 1);
    bck::session moved = std::move(again);
    CHECK(moved.protect("step", step));
}
