// SPDX-License-Identifier: BSD-3-Clause
//
// Steps that stay by name, beside the newest ones.
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "ckptd/store/milestones.hpp"
#include "cli_run.hpp"
#include "common/file.hpp"

using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

using steps = std::vector<std::uint64_t>;

steps in_storage(const temporary& t) { return *ckpt::list_steps(self(), t.dir()); }

void name(const temporary& t, const std::string& as, std::uint64_t step) {
    REQUIRE(ckpt::set_milestone(self(), t.dir(), as, step));
}

/// Saved, with so many newest ones kept and every so-many-th.
banyan::result<void> write(const temporary& t, std::uint64_t step, std::size_t keep,
                           std::uint64_t every = 0) {
    return write_step(own(t.dir()), step, keep, 1000, every);
}

}  // namespace

TEST_CASE("a milestone is the oldest step that is no older than the one asked for", "[milestones]") {
    struct row {
        steps committed;
        std::uint64_t asked;
        std::optional<std::uint64_t> is;
    };
    for (const auto& r : {row{{}, 5, {}}, row{{30, 20, 10}, 20, 20}, row{{30, 20, 10}, 11, 20},
                          row{{30, 20, 10}, 31, {}}, row{{30, 20, 10}, 0, 10}}) {
        CAPTURE(r.asked);
        CHECK(ckpt::milestone_step(r.committed, r.asked) == r.is);
    }
    const auto named = ckpt::assign_milestones({{"a", 5}, {"b", 10}, {"c", 40}}, {30, 10});
    CHECK(named.at == std::map<std::uint64_t, std::vector<std::string>>{{10, {"a", "b"}}});
    CHECK(named.pending == ckpt::milestones{{"c", 40}});
}

TEST_CASE("every Nth step: the first one in storage from each multiple on", "[milestones]") {
    struct row {
        steps committed;
        std::uint64_t step, every;
        std::optional<std::string> name;
    };
    for (const auto& r :
         {row{{100}, 100, 0, {}}, row{{90}, 90, 100, {}}, row{{100, 90}, 100, 100, "step-100"},
          row{{130, 90}, 130, 100, "step-130"}, row{{140, 130}, 140, 100, {}},
          row{{310, 140, 130}, 310, 100, "step-310"}, row{{0}, 0, 100, {}},
          // A job that went back has the later ones of the run before beside it.
          row{{310, 150, 130}, 150, 100, {}}, row{{310, 210, 130}, 210, 100, "step-210"}}) {
        CAPTURE(r.step, r.every);
        CHECK(ckpt::milestone_due(r.committed, r.step, r.every) == r.name);
    }
}

TEST_CASE("milestones stay, those of every Nth and those with a name", "[milestones]") {
    const temporary t;
    for (std::uint64_t step = 10; step <= 120; step += 10) {
        if (step == 40) name(t, "best", 35);
        REQUIRE(write(t, step, 2, 50));
    }
    CHECK(in_storage(t) == steps{120, 110, 100, 50, 40});
    // It may come after its name, and another step may get the name.
    name(t, "best", 125);
    REQUIRE(write(t, 130, 2, 50));
    CHECK(in_storage(t) == steps{130, 120, 100, 50});
    // Whoever asks for every Nth no more keeps those that there are.
    REQUIRE(write(t, 150, 1));
    CHECK(in_storage(t) == steps{150, 130, 100, 50});
    CHECK(*ckpt::list_milestones(self(), t.dir()) ==
          ckpt::milestones{{"best", 125}, {"step-100", 100}, {"step-50", 50}});
    CHECK(*banyan::read_file(t.dir() + "/milestones/best", 100) == "125\n");
}

TEST_CASE("nothing goes while a milestone cannot be read", "[milestones]") {
    const auto spoil = GENERATE(as<std::string>(), "text", "link", "folder", "fifo", "long", "minus");
    const temporary t;
    write_step(t.dir(), 10);
    name(t, "a", 1);
    const auto file = t.dir() + "/milestones/b";
    if (spoil == "text") std::ofstream(file) << "ten\n";
    if (spoil == "minus") std::ofstream(file) << "-1\n";
    if (spoil == "long") std::ofstream(file) << std::string(100'000, '1');
    if (spoil == "link") fs::create_symlink(t.dir() + "/milestones/a", file);
    if (spoil == "folder") fs::create_directory(file);
    if (spoil == "fifo") REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
    // What others leave there is no name.
    std::ofstream(t.dir() + "/milestones/.nfs0001") << "x";
    std::ofstream(t.dir() + "/milestones/B~") << "x";
    for (const std::uint64_t step : {20, 30, 40}) CHECK_FALSE(write(t, step, 1));
    CHECK(in_storage(t) == steps{40, 30, 20, 10});
    CHECK(run("show " + t.dir()).has("milestones/b"));
    fs::remove_all(file);
    REQUIRE(write(t, 50, 1));
    CHECK(in_storage(t) == steps{50, 10});
}

TEST_CASE("a milestone's name is one, and there are not too many", "[milestones]") {
    const temporary t;
    write_step(t.dir(), 10);
    for (const std::string bad : {"", ".", "..", "a/b", "A", "-a", "a b", "ä"})
        CHECK(ckpt::set_milestone(self(), t.dir(), bad, 10).error().code == banyan::errc::invalid_input);
    CHECK(ckpt::set_milestone(self(), t.dir() + "/none", "a", 10).error().code == banyan::errc::not_found);
    name(t, "n0", 10);
    for (std::size_t i = 1; i < ckpt::max_milestones; ++i)
        std::ofstream(t.dir() + "/milestones/n" + std::to_string(i)) << "10\n";
    CHECK(ckpt::set_milestone(self(), t.dir(), "more", 10).error().code == banyan::errc::exhausted);
    name(t, "n7", 20);
    CHECK(ckpt::list_milestones(self(), t.dir())->size() == ckpt::max_milestones);
    CHECK(ckpt::drop_milestone(self(), t.dir(), "none").error().code == banyan::errc::not_found);
}

TEST_CASE("banyan-ckpt names milestones, lists them, and drops them with their step", "[milestones]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20, 30, 40, 50}) REQUIRE(write(t, step, 9));
    CHECK(run("milestone " + folder(t, 20) + " best").has("step 20 in " + t.dir() + " is milestone best"));
    CHECK(run("milestone " + folder(t, 20) + "/ first").code == 0);
    CHECK(run("milestone " + folder(t, 30) + " third").code == 0);
    CHECK(run("milestone " + folder(t, 60) + " best").code == 1);
    CHECK(run("milestone " + t.dir() + " best").code == 2);
    CHECK(run("milestone " + folder(t, 30) + " BEST").code == 2);
    name(t, "later", 70);
    const auto shown = run("show " + t.dir());
    CHECK(shown.code == 0);
    CHECK(shown.has("best, first"));
    CHECK(shown.has("milestone later: the first step from 70 on that reaches storage"));
    const auto json = nlohmann::json::parse(run("show --json " + t.dir()).text);
    CHECK(json["steps"][3]["milestones"] == nlohmann::json{"best", "first"});
    CHECK_FALSE(json["steps"][0].contains("milestones"));
    CHECK(json["pending_milestones"] == nlohmann::json{{"later", 70}});
    const auto by_name = t.dir() + "/milestones/";
    CHECK(run("show " + by_name + "best").has("20  complete"));
    CHECK(run("export " + by_name + "best " + t.dir() + "/out").code == 0);
    // The step goes with its last name.
    const auto one = run("drop " + by_name + "best");
    CHECK(one.code == 0);
    CHECK(one.has("step 20 stays, for it is milestone first, too"));
    CHECK(run("drop " + by_name + "first").has("step 20 is gone from " + t.dir() + ", and milestone first"));
    CHECK(run("drop " + by_name + "later").has("its step is not in storage yet"));
    CHECK(run("drop " + folder(t, 30)).has("and milestone third"));
    CHECK(ckpt::list_milestones(self(), t.dir())->empty());
    CHECK(in_storage(t) == steps{50, 40, 10});
    CHECK(run("drop " + by_name + "best").code == 2);
    // A checkpoint directory may be called so.
    const temporary other;
    const auto odd = other.dir() + "/milestones/run1";
    fs::create_directories(fs::path(odd).parent_path());
    fs::rename(t.dir(), odd);
    CHECK(run("show " + odd).has("50  complete"));
}
