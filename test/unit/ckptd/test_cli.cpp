// SPDX-License-Identifier: BSD-3-Clause
//
// banyan-ckpt on directories: what it says of them, and that it harms nothing that it was not told to.
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/wait.h>

#include "cli_run.hpp"
#include "common/file.hpp"
#include "ends_at.hpp"
#include "steps.hpp"
#include "test/built.hpp"

using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

/// As one whom a file's mode keeps out.
said run_without_power(const std::string& arguments) {
    const bool root = ::geteuid() == 0;
    return run(arguments, root ? "setpriv --bounding-set=-dac_override,-dac_read_search " : "");
}

void spoil(const std::string& path, std::streamoff at) {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const char c = static_cast<char>(f.get() ^ 4);
    f.seekp(at);
    f.put(c);
}

}  // namespace

TEST_CASE("show tells steps, ranks and regions, in 100 columns and as JSON", "[cli]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20}) write_step(t.dir(), step);
    const auto all = run("show " + t.dir());
    CHECK(all.code == 0);
    CHECK(all.has("20  complete  job 12  2 ranks"));
    CHECK(all.has("10  complete  job 12  2 ranks"));
    const auto one = run("show " + folder(t, 20) + "/");
    CHECK(one.code == 0);
    CHECK(one.has("rank 1: 3 regions"));
    CHECK(one.has("b \"quoted\""));
    std::istringstream lines(one.text);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 100);
    const auto json = nlohmann::json::parse(run("show --json " + folder(t, 20)).text);
    CHECK(json["step"] == 20);
    CHECK(json["state"] == "complete");
    REQUIRE(json["ranks"].size() == 2);
    CHECK(json["ranks"][1]["regions"][0] ==
          nlohmann::json({{"name", "a"}, {"dtype", "F32"}, {"shape", {3, 5}}, {"bytes", 60}}));
    CHECK(nlohmann::json::parse(run("show --json " + t.dir()).text)["steps"].size() == 2);
    CHECK(nlohmann::json::parse(run("show --json --rank 1 " + folder(t, 20)).text)["ranks"].size() == 1);
    CHECK(run("show --rank 2 " + folder(t, 20)).code == 1);
    CHECK(run("show --rank 1 " + t.dir()).code == 2);
    CHECK(run("show " + folder(t, 30)).code == 1);
    CHECK(run("show " + t.dir() + "/none").code == 1);
    CHECK(run("show ''").code == 1);
}

TEST_CASE("show says what is damaged and why, whatever lies there", "[cli]") {
    const temporary t;
    write_step(t.dir(), 20);
    const auto file = folder(t, 20) + "/rank-000001.safetensors";
    const auto size = fs::file_size(file);
    const auto refused = [&](const std::string& why) {
        for (const auto& path : {t.dir(), folder(t, 20)}) {
            const auto found = run("show " + path);
            CHECK(found.code == 1);
            INFO(found.text);
            CHECK(found.has("damaged"));
            CHECK(found.has(why));
            CHECK(nlohmann::json::accept(run("show --json " + path).text));
        }
    };
    SECTION("cut") {
        fs::resize_file(file, 3);
        refused("has 3 bytes, its manifest says");
    }
    SECTION("missing") {
        fs::remove(file);
        refused("cannot open");
    }
    SECTION("a link") {
        fs::rename(file, t.dir() + "/elsewhere");
        fs::create_symlink(t.dir() + "/elsewhere", file);
        refused("is a link where none is followed");
    }
    SECTION("a FIFO") {
        fs::remove(file);
        REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
        refused("is not a regular file");
    }
    SECTION("a header of 2^64 bytes") {
        std::ofstream(file, std::ios::in | std::ios::binary).write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
        refused("bytes does not fit");
    }
    SECTION("another rank's file") {
        fs::copy_file(folder(t, 20) + "/rank-000000.safetensors", file, fs::copy_options::overwrite_existing);
        refused("rank 0");
    }
    SECTION("no COMMIT that fits") {
        std::ofstream(folder(t, 20) + "/COMMIT") << "00000000 20\n";
        refused("does not fit its MANIFEST.json");
    }
    CHECK(size > 0);
}

TEST_CASE("names of regions never command a terminal", "[cli]") {
    const temporary t;
    const auto owner = own(t.dir());
    const auto flush = ckpt::open_flush(self(), owner);
    REQUIRE(flush);
    ckpt::manifest m{owner.job, 5, owner.generation, 1, {}};
    std::string wide;
    for (int i = 0; i < 150; ++i) wide += "\xe6\xbc\xa2";
    std::vector<ckpt::region> regions{{"\x1b[2J\n\x07", "U8", {1}, 1, 0},
                                      {wide, "U8", std::vector<std::uint64_t>(16, 1), 1, 0,
                                       ckpt::tensor_part{std::vector<std::uint64_t>(16, 1'000'000),
                                                         std::vector<std::uint64_t>(16, 999'999)}},
                                      {"\xe2\x80\xae"
                                       "evil",
                                       "U8",
                                       {1},
                                       1,
                                       0}};
    regions[1].part = {std::vector<std::uint64_t>(16, 1), std::vector<std::uint64_t>(16, 0)};
    auto head = ckpt::make_image_header(regions, 12, 0, 1);
    REQUIRE(head);
    ckpt::put_step(head->text.data() + head->step_at, 5);
    std::vector<std::byte> image(head->image_bytes);
    std::memcpy(image.data(), head->text.data(), head->text.size());
    const auto f = ckpt::write_shard(self(), owner.dir, *flush, 5, 0, image, ckpt::chunk_checksums(image),
                                     [](std::uint64_t) {});
    REQUIRE(f);
    m.files.push_back(*f);
    REQUIRE(ckpt::commit_step(self(), owner, *flush, m));
    const auto found = run("show " + folder(t, 5));
    CHECK(found.code == 0);
    CHECK(found.has("\\x1b[2J\\n\\x07"));
    CHECK_FALSE(found.has("\x1b"));
    CHECK_FALSE(found.has("\xe2\x80\xae"));
    std::istringstream lines(found.text);
    for (std::string line; std::getline(lines, line);)
        CHECK(line.size() <= 120);  // 17 of three bytes, two columns each
    const auto json = run("show --json " + folder(t, 5));
    CHECK_FALSE(json.has("\x1b"));
    CHECK(nlohmann::json::parse(json.text)["ranks"][0]["regions"][1]["name"] == wide);
}

TEST_CASE("export copies what is whole, and onto nothing", "[cli]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20}) write_step(t.dir(), step);
    const auto to = (t.path / "out" / "deep").string();
    const auto done = run("export " + t.dir() + " " + to);
    CHECK(done.code == 0);
    CHECK(done.has("step 20: 2 files"));
    const auto read = [](const std::string& path) { return *banyan::read_file(path, 64u << 20); };
    for (const auto* name : {"/rank-000000.safetensors", "/rank-000001.safetensors"})
        CHECK(read(to + name) == read(folder(t, 20) + name));
    CHECK(std::distance(fs::directory_iterator(to), {}) == 2);
    const auto again = run("export " + folder(t, 10) + " " + to);
    CHECK(again.code == 1);
    CHECK(again.has("is there already; --force"));
    CHECK(read(to + "/rank-000000.safetensors") == read(folder(t, 20) + "/rank-000000.safetensors"));
    CHECK(run("export --force --rank 1 " + folder(t, 10) + " " + to).code == 0);
    CHECK(read(to + "/rank-000001.safetensors") == read(folder(t, 10) + "/rank-000001.safetensors"));
    CHECK(run("export --rank 2 " + folder(t, 10) + " " + to + "2").code == 1);
    // Onto itself, without and with leave: the step stays whole.
    CHECK(run("export " + folder(t, 10) + " " + folder(t, 10)).code == 1);
    CHECK(run("export --force " + folder(t, 10) + " " + folder(t, 10)).code == 0);
    CHECK(run("verify " + t.dir()).code == 0);
    // Damage is never copied; the older whole step is taken where none was named.
    spoil(folder(t, 20) + "/rank-000001.safetensors", 4'500'000);
    const auto other = (t.path / "other").string();
    CHECK(run("export " + folder(t, 20) + " " + other).has("is damaged"));
    CHECK_FALSE(fs::exists(other + "/rank-000001.safetensors"));
    const auto older = run("export " + t.dir() + " " + other + "2");
    CHECK(older.code == 0);
    CHECK(older.has("is damaged"));
    CHECK(older.has("step 10: 2 files"));
    // A link at the place of a file is not followed.
    const auto third = (t.path / "third").string();
    fs::create_directories(third);
    fs::create_symlink(t.path / "victim", third + "/rank-000000.safetensors");
    CHECK(run("export " + folder(t, 10) + " " + third).code == 1);
    CHECK(run("export --force " + folder(t, 10) + " " + third).code == 0);
    CHECK_FALSE(fs::exists(t.path / "victim"));
    CHECK(run("export " + folder(t, 10) + " /proc/nowhere").code == 1);
}

TEST_CASE("paths mean what the kernel takes them for", "[cli]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20}) write_step(t.dir(), step);
    const auto here = [&](const std::string& where, const std::string& arguments) {
        const auto before = fs::current_path();
        fs::current_path(where);
        const auto out = run(arguments);
        fs::current_path(before);
        return out;
    };
    CHECK(here(folder(t, 10), "show .").has("10  complete"));
    CHECK(here(t.dir(), "show step-000000000010").has("10  complete"));
    CHECK(here(t.dir(), "show .").has("20  complete"));
    CHECK(here(t.path, "export ckpt out").code == 0);
    CHECK(fs::exists(t.path / "out" / "rank-000001.safetensors"));
    // "link/.." is not where the link is.
    const auto other = (t.path / "other").string();
    fs::create_directories(other + "/inside");
    fs::create_symlink(other + "/inside", t.dir() + "/link");
    CHECK(run("drop --force " + t.dir() + "/link/../step-000000000010").code == 1);
    CHECK(fs::exists(folder(t, 10)));
    // What is full is said, and leaves nothing.
    CHECK(run("export " + t.dir() + " /dev/full").code == 1);
}

TEST_CASE("restore has the next start begin from an older step, and loses none", "[cli]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20, 30, 40}) write_step(own(t.dir()), step, 5);
    const auto taken = run("restore " + folder(t, 20));
    CHECK(taken.code == 1);
    CHECK(taken.has("job 12 on node n1 has"));
    REQUIRE(ckpt::release_claim(self(), own(t.dir())));
    const auto older = run("restore " + folder(t, 20) + "/");
    CHECK(older.code == 0);
    CHECK(older.has("steps newer than it set aside"));
    CHECK(older.has("set-aside: 40, 30"));
    CHECK(*ckpt::list_steps(self(), t.dir()) == std::vector<std::uint64_t>{20, 10});
    CHECK(*banyan::read_file(t.dir() + "/latest", 100) == "step-000000000020\n");
    const auto aside = t.dir() + "/set-aside";
    CHECK(run("verify " + aside).code == 0);
    // Again, and the way back.
    CHECK(run("restore " + folder(t, 20)).text.find("set aside") == std::string::npos);
    CHECK(run("restore " + ckpt::step_folder(aside, 30)).code == 0);
    CHECK(*ckpt::list_steps(self(), t.dir()) == std::vector<std::uint64_t>{30, 20, 10});
    CHECK(*ckpt::list_steps(self(), aside) == std::vector<std::uint64_t>{40});
    CHECK(*banyan::read_file(t.dir() + "/latest", 100) == "step-000000000030\n");
    // Nothing that is there is replaced, neither way.
    fs::copy(ckpt::step_folder(aside, 40), folder(t, 40));
    CHECK(run("restore " + ckpt::step_folder(aside, 40)).has("is there already"));
    CHECK(run("restore " + folder(t, 30)).has("is there already"));
    CHECK(*ckpt::list_steps(self(), t.dir()) == std::vector<std::uint64_t>{40, 30, 20, 10});
    CHECK(run("verify " + t.dir()).code == 0);
    // What is not whole is not chosen; what is no folder of a step is none.
    spoil(folder(t, 20) + "/rank-000001.safetensors", 4'500'000);
    CHECK(run("restore " + folder(t, 20)).code == 1);
    CHECK(ckpt::list_steps(self(), t.dir())->front() == 40);
    CHECK(run("restore " + t.dir()).code == 2);
    fs::remove_all(aside);
    fs::create_symlink("/tmp", aside);
    CHECK(run("restore " + folder(t, 10)).code == 1);
    CHECK(ckpt::list_steps(self(), t.dir())->front() == 40);
}

namespace {

/// Each of the steps is whole and where it was or aside, none twice, and `latest` names the newest.
void nothing_is_lost(const std::string& dir, const std::vector<std::uint64_t>& steps) {
    const auto aside = dir + "/set-aside";
    const auto here = ckpt::list_steps(self(), dir), there = ckpt::list_steps(self(), aside);
    REQUIRE(here);
    REQUIRE(there);
    auto all = *here;
    all.insert(all.end(), there->begin(), there->end());
    std::sort(all.begin(), all.end());
    CHECK(all == steps);
    for (const auto step : *here) CHECK(ckpt::verify_step(self(), dir, step, 2));
    for (const auto step : *there) CHECK(ckpt::verify_step(self(), aside, step, 2));
}

std::string newest_name(const std::string& dir) {
    return ckpt::step_name(ckpt::list_steps(self(), dir)->front()) + "\n";
}

}  // namespace

TEST_CASE("two restores at once lose nothing, and agree on what is the newest", "[cli]") {
    const temporary t;
    const ends_at ends;
    for (const std::uint64_t step : {10, 20, 30, 40}) REQUIRE(write_step(own(t.dir()), step, 5, 1000));
    REQUIRE(ckpt::release_claim(self(), own(t.dir())));
    const auto aside = t.dir() + "/set-aside";
    // The one stands still before each of its calls in turn, and the other one runs meanwhile.
    const bool back = GENERATE(false, true), other_back = GENERATE(false, true);
    std::string with;
    for (const auto& word : ends.before()) with += word + " ";
    int calls = 0;
    for (bool stopped = true; stopped; ++calls) {
        INFO("call " << calls + 1 << ", " << back << other_back);
        REQUIRE(calls < 100);
        CHECK(run("restore " + folder(t, back ? 10 : 40)).code == 0);
        if (!back && other_back) CHECK(run("restore " + folder(t, 30)).code == 0);
        ends.call("storage", calls + 1, SIGSTOP);
        const auto target = back ? ckpt::step_folder(aside, 30) : folder(t, 20);
        auto* one = ::popen((with + "sh -c 'echo $$; exec " + banyan::testing::built("banyan-ckpt") +
                             " restore " + target + "' 2>&1")
                                .c_str(),
                            "r");
        REQUIRE(one);
        pid_t pid = 0;
        REQUIRE(std::fscanf(one, "%d", &pid) == 1);
        int ended = 0;
        const auto stands = [&] {
            const auto stat = banyan::read_file("/proc/" + std::to_string(pid) + "/stat", 1000);
            if (!stat || stat->find(") Z ") != std::string::npos) return ended = 1, true;
            return stat->find(") T ") != std::string::npos;
        };
        while (!stands()) ::usleep(1000);
        stopped = ended == 0;
        const auto other = run("restore " + (other_back ? ckpt::step_folder(aside, 40) : folder(t, 10)));
        if (stopped) ::kill(pid, SIGCONT);
        std::string text = other.text;
        for (int c = 0; (c = std::fgetc(one)) != EOF;) text += static_cast<char>(c);
        const int status = ::pclose(one);
        INFO(text);
        CHECK((status == 0 || other.code == 0));
        if (!stopped) ends.never("storage");
        nothing_is_lost(t.dir(), {10, 20, 30, 40});
        CHECK(*banyan::read_file(t.dir() + "/latest", 100) == newest_name(t.dir()));
        for (const std::uint64_t step : {20, 30, 40})
            if (fs::exists(ckpt::step_folder(aside, step)))
                CHECK(run("restore " + ckpt::step_folder(aside, step)).code == 0);
    }
    CHECK(calls > 5);
}

TEST_CASE("a restore that is killed anywhere loses nothing, and the next one does it", "[cli]") {
    const temporary t;
    const ends_at ends;
    for (const std::uint64_t step : {10, 20, 30, 40}) REQUIRE(write_step(own(t.dir()), step, 5, 1000));
    REQUIRE(ckpt::release_claim(self(), own(t.dir())));
    const auto aside = t.dir() + "/set-aside";
    const bool back = GENERATE(false, true);
    std::string with;
    for (const auto& word : ends.before()) with += word + " ";
    int calls = 0;
    for (bool killed = true; killed; ++calls) {
        INFO("call " << calls + 1);
        REQUIRE(calls < 100);
        // 40, 30 and 20 lie aside, or none of them.
        CHECK(run("restore --force " + folder(t, back ? 10 : 40)).code == 0);
        const auto target = back ? ckpt::step_folder(aside, 20) : folder(t, 10);
        ends.call("storage", calls + 1, SIGKILL);
        const auto command =
            with + banyan::testing::built("banyan-ckpt") + " restore " + target + " >/dev/null 2>&1";
        const int status = std::system(command.c_str());
        killed = ends.has_come("storage");
        CHECK(killed == (status != 0));
        if (!killed) ends.never("storage");
        nothing_is_lost(t.dir(), {10, 20, 30, 40});
        // The same once more: from wherever the step lies by now.
        const auto wanted = back ? 20u : 10u;
        const auto lies =
            fs::exists(folder(t, wanted)) ? folder(t, wanted) : ckpt::step_folder(aside, wanted);
        const auto again = run("restore " + lies);
        INFO(again.text);
        CHECK(again.code == 0);
        nothing_is_lost(t.dir(), {10, 20, 30, 40});
        CHECK(ckpt::list_steps(self(), t.dir())->front() == wanted);
        CHECK(*banyan::read_file(t.dir() + "/latest", 100) == newest_name(t.dir()));
        for (const std::uint64_t step : {20, 30, 40})
            if (fs::exists(ckpt::step_folder(aside, step)))
                CHECK(run("restore " + ckpt::step_folder(aside, step)).code == 0);
    }
    CHECK(calls > 10);
}

TEST_CASE("restore knows where it is, whatever the directory is called", "[cli]") {
    const temporary t;
    const auto dir = t.dir() + "/set-aside";
    fs::create_directories(dir);
    for (const std::uint64_t step : {10, 20, 30}) write_step(own(dir), step, 5);
    CHECK(run("restore " + ckpt::step_folder(dir, 10)).has("has not given it back"));
    REQUIRE(ckpt::release_claim(self(), own(dir)));
    // What a commit that was cut short leaves, on some file systems.
    fs::copy(ckpt::step_folder(dir, 30), dir + "/.replaced.step-000000000030");
    CHECK(run("restore " + ckpt::step_folder(dir, 20)).code == 0);
    CHECK(*ckpt::list_steps(self(), dir) == std::vector<std::uint64_t>{20, 10});
    // By another way of saying it.
    CHECK(run("restore " + dir + "/set-aside/./step-000000000030").code == 0);
    CHECK(*ckpt::list_steps(self(), dir) == std::vector<std::uint64_t>{30, 20, 10});
    CHECK(*banyan::read_file(dir + "/latest", 100) == "step-000000000030\n");
}

TEST_CASE("drop removes a step by a rename, but not what is needed", "[cli]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20, 30}) write_step(own(t.dir()), step, 3);
    const auto newest = run("drop " + folder(t, 30));
    CHECK(newest.code == 1);
    CHECK(newest.has("which job 12 on node n1 has not given back"));
    const auto gone = run("drop " + folder(t, 20));
    CHECK(gone.code == 0);
    CHECK(gone.has("step 20 is gone"));
    CHECK_FALSE(fs::exists(folder(t, 20)));
    CHECK(run("drop " + folder(t, 20)).code == 1);
    CHECK(*banyan::read_file(t.dir() + "/latest", 100) == "step-000000000030\n");
    REQUIRE(ckpt::release_claim(self(), own(t.dir())));
    CHECK(run("drop " + folder(t, 30)).code == 0);
    CHECK(*banyan::read_file(t.dir() + "/latest", 100) == "step-000000000010\n");
    // Another step that is damaged is no other step.
    write_step(t.dir(), 40);
    REQUIRE(ckpt::release_claim(self(), own(t.dir())));
    spoil(folder(t, 40) + "/rank-000000.safetensors", 4'500'000);
    const auto last = run("drop " + folder(t, 10));
    CHECK(last.code == 1);
    CHECK(last.has("step 10 is the only whole one"));
    CHECK(run("drop " + folder(t, 40)).code == 0);
    CHECK(run("drop " + folder(t, 10)).code == 1);
    CHECK(run("drop --force " + folder(t, 10)).code == 0);
    CHECK_FALSE(fs::exists(t.dir() + "/latest"));
    std::size_t left = 0;
    for (const auto& entry : fs::directory_iterator(t.dir()))
        left += !entry.path().filename().string().starts_with("OWNER");
    CHECK(left == 0);
    CHECK(run("drop " + t.dir()).code == 2);
    fs::create_symlink("/tmp", folder(t, 50));
    CHECK(run("drop --force " + folder(t, 50)).code == 1);
    CHECK(fs::is_symlink(folder(t, 50)));
}

TEST_CASE("root drops a step as the owner of its directory, with no more rights than his", "[cli]") {
    if (::geteuid() != 0) return;
    constexpr uid_t owner = 65534;
    const temporary t;
    fs::permissions(t.path, fs::perms(0755));
    for (const std::uint64_t step : {10, 20, 30}) write_step(t.dir(), step);
    REQUIRE(::chown(t.dir().c_str(), owner, owner) == 0);
    for (const auto& one : fs::recursive_directory_iterator(t.dir()))
        REQUIRE(::lchown(one.path().c_str(), owner, owner) == 0);
    CHECK(run("drop --force " + folder(t, 30)).code == 0);
    struct stat st {};
    REQUIRE(::stat((t.dir() + "/latest").c_str(), &st) == 0);
    CHECK(st.st_uid == owner);
    // What he may not change stays as it is.
    fs::permissions(t.dir(), fs::perms(0555));
    const auto kept = run("drop --force " + folder(t, 20));
    CHECK(kept.code == 1);
    CHECK(kept.has("Permission denied"));
    CHECK(fs::exists(folder(t, 20) + "/COMMIT"));
}

TEST_CASE("a step that cannot be looked at is no damaged one", "[cli]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20}) write_step(own(t.dir()), step, 3);
    REQUIRE(ckpt::release_claim(self(), own(t.dir())));
    const auto hidden =
        folder(t, 20) + GENERATE(as<std::string>(), "", "/MANIFEST.json", "/rank-000001.safetensors");
    fs::permissions(hidden, fs::perms::none);
    // An older step does not stand for it.
    const auto to = (t.path / "out").string();
    const auto exported = run_without_power("export " + t.dir() + " " + to);
    CHECK(exported.code == 1);
    CHECK(exported.has("Permission denied"));
    CHECK_FALSE(fs::exists(to + "/rank-000000.safetensors"));
    CHECK(run_without_power("export " + folder(t, 10) + " " + to).code == 0);
    // It may be the only whole one.
    REQUIRE(run("drop " + folder(t, 10)).code == 0);
    const auto dropped = run_without_power("drop " + folder(t, 20));
    CHECK(dropped.code == 1);
    CHECK(dropped.has("Permission denied"));
    fs::permissions(hidden, fs::perms::owner_all);
    CHECK(run("verify " + t.dir()).code == 0);
}

TEST_CASE("a directory that is not there has not no steps", "[cli]") {
    const temporary t;
    for (const std::string command : {"ls ", "verify ", "show "}) {
        const auto asked = run(command + t.dir());
        CHECK(asked.code == 1);
        CHECK(asked.has("is it mounted on this node?"));
    }
    CHECK(run("export " + t.dir() + " " + (t.path / "out").string()).has("is it mounted on this node?"));
    fs::create_directories(t.dir());
    const auto empty = run("ls " + t.dir());
    CHECK(empty.code == 0);
    CHECK(empty.has("no committed step in"));
}

TEST_CASE("a step that a commit was about to replace is one like any", "[cli]") {
    const temporary t;
    const auto aside = t.dir() + "/set-aside";
    const auto cut_short = [](const std::string& in, const std::string& name) {
        fs::rename(in + "/" + name, in + "/.replaced." + name);
    };
    const std::string twenty = "step-000000000020";
    for (const std::uint64_t step : {10, 20, 30}) write_step(own(t.dir()), step, 5);
    REQUIRE(ckpt::release_claim(self(), own(t.dir())));
    SECTION("dropped") {
        cut_short(t.dir(), twenty);
        CHECK(run("drop " + folder(t, 20)).code == 0);
        CHECK(*ckpt::list_steps(self(), t.dir()) == std::vector<std::uint64_t>{30, 10});
    }
    SECTION("set aside") {
        cut_short(t.dir(), twenty);
        CHECK(run("restore " + folder(t, 10)).code == 0);
        CHECK(fs::exists(aside + "/" + twenty));
        CHECK(run("verify " + aside).code == 0);
    }
    SECTION("as an earlier release has set it aside") {
        REQUIRE(run("restore " + folder(t, 10)).code == 0);
        cut_short(aside, twenty);
        CHECK(run("restore " + aside + "/" + twenty).code == 0);
        CHECK(*ckpt::list_steps(self(), t.dir()) == std::vector<std::uint64_t>{20, 10});
        CHECK(*banyan::read_file(t.dir() + "/latest", 100) == twenty + "\n");
        REQUIRE(run("restore " + folder(t, 10)).code == 0);
        cut_short(aside, twenty);
        CHECK(run("drop " + aside + "/" + twenty).code == 0);
        CHECK(*ckpt::list_steps(self(), aside) == std::vector<std::uint64_t>{30});
    }
    SECTION("where one is put back: nothing is replaced, and nothing moved before that is known") {
        fs::create_directories(aside);
        fs::copy(folder(t, 20), aside + "/" + twenty);
        cut_short(t.dir(), twenty);
        const auto refused = run("restore " + aside + "/" + twenty);
        CHECK(refused.code == 1);
        CHECK(refused.has("is there already"));
        CHECK(*ckpt::list_steps(self(), t.dir()) == std::vector<std::uint64_t>{30, 20, 10});
    }
}
