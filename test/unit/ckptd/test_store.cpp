// SPDX-License-Identifier: BSD-3-Clause
//
// Shards as safetensors, steps in storage, damage found before use, rights of the user.
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "ckptd/buffers/memory.hpp"
#include "ckptd/store/image_origin.hpp"
#include "ckptd/store/safetensors.hpp"
#include "ckptd/store/store.hpp"
#include "common/crc32c.hpp"
#include "common/file.hpp"
#include "steps.hpp"
#include "test/idle_clock.hpp"

namespace test_store {

using namespace banyan::ckpt;
using namespace ckptd_test;
namespace fs = std::filesystem;

namespace {

void flip(const std::string& path, std::streamoff at) {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(at);
    const char c = static_cast<char>(f.get() ^ 4);
    f.seekp(at);
    f.put(c);
}

}  // namespace

TEST_CASE("an image is plain safetensors without holes, data on a page", "[ckptd]") {
    const auto image = make_image(42, 1);
    std::uint64_t n = 0;
    std::memcpy(&n, image.data(), 8);
    CHECK((n + 8) % 4096 == 0);
    const auto head = nlohmann::json::parse(std::string(reinterpret_cast<const char*>(image.data()) + 8, n));
    CHECK(head["__metadata__"]["step"] == "000000000042");
    std::map<std::uint64_t, std::uint64_t> extents;
    for (const auto& [name, e] : head.items())
        if (name != "__metadata__") extents[e["data_offsets"][0]] = e["data_offsets"][1];
    std::uint64_t at = 0;
    for (const auto& [from, to] : extents) {
        CHECK(from == at);
        at = to;
    }
    CHECK(at + n + 8 == image.size());
    const auto back = read_image(image);
    REQUIRE(back);
    CHECK(back->step == 42);
    CHECK(back->rank == 1);
    REQUIRE(back->regions.size() == 3);
    for (const auto& r : back->regions) CHECK(r.offset % dtype_bytes(r.dtype) == 0);
}

TEST_CASE("a damaged image's header is refused, whatever it claims", "[ckptd]") {
    auto image = make_image(1, 0);
    const auto with = [&](std::uint64_t length) {
        auto copy = image;
        std::memcpy(copy.data(), &length, 8);
        return read_image(copy);
    };
    CHECK_FALSE(with(UINT64_MAX));
    CHECK_FALSE(with(image.size()));
    CHECK_FALSE(with(0));
    CHECK_FALSE(with(17));
    const std::string text(reinterpret_cast<const char*>(image.data()), image.size());
    const auto swapped = [&](const std::string& from, const std::string& to) {
        auto copy = image;
        const auto where = text.find(from);
        REQUIRE(where != std::string::npos);
        REQUIRE(from.size() == to.size());
        std::memcpy(copy.data() + where, to.data(), to.size());
        return read_image(copy);
    };
    CHECK(swapped("\"F32\"", "\"F32\""));
    CHECK_FALSE(swapped("\"F32\"", "\"X32\""));
    CHECK_FALSE(swapped("[3,5]", "[3,6]"));
    CHECK_FALSE(swapped("[8,68]", "[9,68]"));
    CHECK_FALSE(swapped("[5000001]", "[9999999]"));
    CHECK_FALSE(read_image({}));
}

namespace {
void fit_one_image(int count) {
    std::vector<region> regions;
    for (int i = 0; i < count; ++i) regions.push_back({fmt::format("r{}", i), "F64", {1}, 8, 0});
    const auto head = make_image_header(regions, 1, 0, 1);
    REQUIRE(head);
    std::vector<std::byte> image(head->image_bytes);
    std::memcpy(image.data(), head->text.data(), head->text.size());
    CHECK(head->image_bytes == head->text.size() + 8 * regions.size());
    const auto back = read_image(image);
    REQUIRE(back);
    REQUIRE(back->regions.size() == regions.size());
    bool same = true;
    for (std::size_t i = 0; i < regions.size(); ++i)
        same =
            same && back->regions[i].name == regions[i].name && back->regions[i].offset == regions[i].offset;
    CHECK(same);
}
}  // namespace

TEST_CASE("many regions fit one image, small ones without gaps", "[ckptd]") { fit_one_image(20'000); }

TEST_CASE("a million regions fit one image", "[.large]") { fit_one_image(1'000'000); }

TEST_CASE("names that make a header too long are refused", "[.large]") {
    std::vector<region> regions;
    for (int i = 0; i < 1'000'000; ++i)
        regions.push_back({fmt::format("r{} of a name that is rather long", i), "F64", {1}, 8, 0});
    CHECK_FALSE(make_image_header(regions, 1, 0, 1));
}

TEST_CASE("whose an image is stands at its begin, and a long header is not read for it", "[ckptd]") {
    const auto image = make_image(7, 1);
    const auto of = read_origin(image);
    REQUIRE(of);
    CHECK(of->rank == 1);
    CHECK(of->world == 2);
    const auto with = [](const std::string& json) {
        const std::uint64_t n = json.size();
        std::vector<std::byte> made(8 + json.size() + 8);
        std::memcpy(made.data(), &n, 8);
        std::memcpy(made.data() + 8, json.data(), json.size());
        return read_origin(made);
    };
    const std::string begin = R"({"__metadata__":{"job":"1","rank":"3","world":"5")";
    const auto cut = with(begin + R"(,"pieces":")" + std::string(1'000'000, 'a'));
    REQUIRE(cut);
    CHECK(cut->rank == 3);
    CHECK(cut->world == 5);
    CHECK_FALSE(
        with(R"({"__metadata__":{"pieces":")" + std::string(5000, 'a') + R"(","rank":"3","world":"5"}})"));
    CHECK_FALSE(with(R"({"a":{"rank":"3","world":"5"}})"));
    CHECK_FALSE(with(R"({"__metadata__":{"b":{"rank":"3","world":"5"}}})"));
    CHECK_FALSE(with(R"({"__metadata__":{"rank":"3","world":"4294967296"}})"));
    CHECK_FALSE(with(R"({"__metadata__":{"rank":"3","world":"five"}})"));
    CHECK_FALSE(with(std::string(4000, '[')));
    CHECK_FALSE(with(""));
    CHECK_FALSE(read_origin({}));
}

TEST_CASE("an image names each tensor once, and nothing but tensors", "[ckptd]") {
    const auto with = [](const std::string& json) {
        const std::uint64_t n = json.size();
        std::vector<std::byte> image(8 + json.size() + 8);
        std::memcpy(image.data(), &n, 8);
        std::memcpy(image.data() + 8, json.data(), json.size());
        return read_image(image);
    };
    const std::string meta = R"("__metadata__":{"step":"000000000007","rank":"0","world":"1"})";
    const std::string a = R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})";
    CHECK(with("{" + meta + "," + a + "}"));
    CHECK(with("{" + a + "," + meta + "}"));
    CHECK_FALSE(with("{" + meta + "," + a + "," + a + "}"));
    CHECK_FALSE(with("{" + meta + "," + meta + "," + a + "}"));
    CHECK_FALSE(with("{" + a + "}"));
    CHECK_FALSE(with("{" + meta + R"(,"b":[1,2]})"));
    CHECK_FALSE(with("{" + meta + R"(,"b":7})"));
    CHECK_FALSE(with("{" + meta + R"(,"b":{"dtype":"U8","shape":[[8]],"data_offsets":[0,8]}})"));
    CHECK_FALSE(with("{" + meta + R"(,"b":{"dtype":"U8","shape":[8.0],"data_offsets":[0,8]}})"));
    CHECK_FALSE(with("{" + meta + R"(,"b":{"dtype":"U8","shape":[{}],"data_offsets":[0,8]}})"));
    CHECK_FALSE(with("{" + meta + R"(,"b":{"dtype":"U8","data_offsets":[0,0]}})"));
    CHECK_FALSE(with("{" + meta + "," + a + "} {}"));
    const auto pieces = [&](const std::string& text) {
        auto said = meta;
        said.insert(said.size() - 1, ",\"pieces\":" + nlohmann::json(text).dump());
        return with("{" + said + "," + a + "}");
    };
    const auto piece = pieces(R"({"a":{"global_shape":[20],"offset":[12]}})");
    REQUIRE(piece);
    CHECK(piece->regions[0].part == tensor_part{{20}, {12}});
    for (const auto* text :
         {R"({"a":{"global_shape":[20],"offset":[13]}})", R"({"b":{"global_shape":[20],"offset":[0]}})",
          R"({"a":{"global_shape":[20]}})", R"({"a":{"global_shape":[20,1],"offset":[0,0]}})",
          R"({"a":{"global_shape":[],"offset":[]}})", R"({"a":{"global_shape":[20],"offset":[-1]}})", "[]",
          "{"})
        CHECK_FALSE(pieces(text));
    CHECK_FALSE(with("{" + meta + "," + std::string(1'000'000, '[')));
}

TEST_CASE("a step in storage: written, read back, kept and removed", "[ckptd]") {
    const temporary t;
    for (const std::uint64_t step : {10, 20, 30}) write_step(t.dir(), step);
    CHECK(*list_steps(self(), t.dir()) == std::vector<std::uint64_t>{30, 20});
    CHECK(*banyan::read_file(t.dir() + "/latest", 100) == "step-000000000030\n");
    const auto m = load_step(t.dir(), 30);
    REQUIRE(m);
    const auto image = make_image(30, 1);
    std::vector<std::byte> back(image.size());
    REQUIRE(read_shard(self(), t.dir(), 30, m->files[1], back));
    CHECK(back == image);
    for (const auto& e : fs::recursive_directory_iterator(t.dir()))
        CHECK(e.path().filename().string()[0] != '.');
    // Without COMMIT the step does not exist.
    fs::remove(t.dir() + "/step-000000000030/COMMIT");
    CHECK(*list_steps(self(), t.dir()) == std::vector<std::uint64_t>{20});
    CHECK_FALSE(load_step(t.dir(), 30));
    CHECK(list_steps(self(), t.dir() + "/none")->empty());
}

TEST_CASE("damage in storage is found: manifest, shard, length", "[ckptd]") {
    const temporary t;
    write_step(t.dir(), 7);
    const auto folder = t.dir() + "/step-000000000007/";
    const auto m = load_step(t.dir(), 7);
    REQUIRE(m);
    std::vector<std::byte> into(m->files[0].bytes);
    SECTION("one bit in the second chunk") {
        flip(folder + "rank-000000.safetensors", 4'500'000);
        const auto read = read_shard(self(), t.dir(), 7, m->files[0], into);
        REQUIRE_FALSE(read);
        CHECK(read.error().what.find("chunk 1") != std::string::npos);
    }
    SECTION("a shard that is too short") {
        fs::resize_file(folder + "rank-000000.safetensors", m->files[0].bytes - 1);
        CHECK_FALSE(read_shard(self(), t.dir(), 7, m->files[0], into));
    }
    SECTION("a FIFO in its place") {
        fs::remove(folder + "rank-000000.safetensors");
        REQUIRE(::mkfifo((folder + "rank-000000.safetensors").c_str(), 0600) == 0);
        CHECK_FALSE(read_shard(self(), t.dir(), 7, m->files[0], into));
    }
    SECTION("a link in its place, to a file that is right") {
        fs::rename(folder + "rank-000000.safetensors", t.path / "moved");
        fs::create_symlink(t.path / "moved", folder + "rank-000000.safetensors");
        CHECK_FALSE(read_shard(self(), t.dir(), 7, m->files[0], into));
        CHECK_FALSE(check_shard(self(), t.dir(), 7, m->files[0]));
    }
    SECTION("a FIFO for COMMIT or manifest") {
        const auto name = GENERATE(as<std::string>(), "COMMIT", "MANIFEST.json");
        fs::remove(folder + name);
        REQUIRE(::mkfifo((folder + name).c_str(), 0600) == 0);
        CHECK_FALSE(load_step(t.dir(), 7));
    }
    SECTION("a folder that is a link") {
        fs::rename(t.dir() + "/step-000000000007", t.path / "moved");
        fs::create_symlink(t.path / "moved", t.dir() + "/step-000000000007");
        CHECK(list_steps(self(), t.dir())->empty());
        CHECK_FALSE(load_step(t.dir(), 7));
        CHECK_FALSE(try_write_step(t.dir(), 7));
    }
    SECTION("another number of ranks") { CHECK_FALSE(load_step(t.dir(), 7, 3)); }
    SECTION("the manifest") {
        flip(folder + "MANIFEST.json", 40);
        CHECK_FALSE(load_step(t.dir(), 7));
    }
    SECTION("another step's COMMIT") {
        write_step(t.dir(), 8);
        fs::copy_file(t.dir() + "/step-000000000008/COMMIT", folder + "COMMIT",
                      fs::copy_options::overwrite_existing);
        CHECK_FALSE(load_step(t.dir(), 7));
    }
}

TEST_CASE("memory that changed since its checksum is never written", "[ckptd]") {
    const temporary t;
    const auto flush = open_flush(self(), own(t.dir()));
    REQUIRE(flush);
    auto image = make_image(1, 0);
    const auto chunks = chunk_checksums(image);
    image[4'700'000] ^= std::byte{1};
    CHECK_FALSE(write_shard(self(), t.dir(), *flush, 1, 0, image, chunks, [](std::uint64_t) {}));
    CHECK(fs::is_empty(t.dir() + "/" + *flush));
}

TEST_CASE("storage is touched with the user's rights", "[ckptd]") {
    if (::geteuid() != 0) return;
    const temporary t;
    const storage_user nobody{65534, 65534, {65534}};
    ::chmod(t.path.c_str(), 0755);
    CHECK_FALSE(prepare_directory(nobody, t.dir()));
    fs::create_directory(t.dir());
    REQUIRE(::chown(t.dir().c_str(), 65534, 65534) == 0);
    REQUIRE(prepare_directory(nobody, t.dir()));
    const auto owner = take_claim(nobody, {t.dir(), 0, 12, 1, "n1", 1000, 0}, std::nullopt);
    REQUIRE(owner);
    const auto flush = open_flush(nobody, *owner);
    REQUIRE(flush);
    const auto image = make_image(1, 0);
    const auto file =
        write_shard(nobody, t.dir(), *flush, 1, 0, image, chunk_checksums(image), [](std::uint64_t) {});
    REQUIRE(file);
    REQUIRE(commit_step(nobody, *owner, *flush, {12, 1, 1, 1, {*file}}));
    struct stat st {};
    REQUIRE(::stat((t.dir() + "/step-000000000001/rank-000000.safetensors").c_str(), &st) == 0);
    CHECK(st.st_uid == 65534);
    CHECK(st.st_gid == 65534);
    std::ofstream(t.path / "root-only") << "x";  // and this thread is root again
    REQUIRE(::stat((t.path / "root-only").c_str(), &st) == 0);
    CHECK(st.st_uid == 0);
}

TEST_CASE("a manifest's author may write what he likes", "[ckptd]") {
    const temporary t;
    write_step(t.dir(), 7);
    const auto folder = t.dir() + "/step-000000000007/";
    const auto right = *banyan::read_file(folder + "MANIFEST.json", 1 << 20);
    const auto with = [&](const std::string& text) {
        std::ofstream(folder + "MANIFEST.json") << text;
        const auto crc = banyan::crc32c(std::as_bytes(std::span(text)));
        std::ofstream(folder + "COMMIT") << fmt::format("{:08x} 7\n", crc);
        return load_step(t.dir(), 7).has_value();
    };
    const auto swapped = [&](const std::string& from, const std::string& to) {
        auto text = right;
        const auto at = text.find(from);
        REQUIRE(at != std::string::npos);
        return with(text.replace(at, from.size(), to));
    };
    CHECK(with(right));
    CHECK(swapped("\"step\"", "\"more\": {\"a\": [1, {\"b\": null}]}, \"step\""));
    CHECK_FALSE(swapped("\"step\": 7", "\"step\": 8"));
    CHECK_FALSE(swapped("\"step\": 7", "\"step\": -7"));
    CHECK_FALSE(swapped("\"world\": 2", "\"world\": 3"));
    CHECK_FALSE(swapped("\"world\": 2", "\"world\": 4294967296"));
    CHECK_FALSE(swapped("\"rank\": 1", "\"rank\": 0"));
    CHECK_FALSE(swapped("\"rank\": 1", "\"rank\": 4294967297"));
    CHECK_FALSE(swapped("\"size\": ", "\"size\": 9"));
    CHECK_FALSE(swapped("\"size\": ", "\"size\": 1844674407370955161"));
    CHECK_FALSE(swapped("\"crc32c_4mib\": [", "\"crc32c_4mib\": [ 1,"));
    CHECK_FALSE(swapped("\"crc32c_4mib\": [", "\"crc32c_4mib\": [], \"x\": ["));
    CHECK_FALSE(swapped("\"crc32c_4mib\": [", "\"crc32c_4mib\": [[1],"));
    CHECK_FALSE(swapped("\"files\": [", "\"files\": [ 5,"));
    CHECK_FALSE(swapped("\"files\": [", "\"files\": [ [{}],"));
    CHECK_FALSE(swapped("\"files\": [", "\"files\": {}, \"x\": ["));
    CHECK_FALSE(with("{\"files\": [], " + right.substr(1)));
    CHECK_FALSE(with("[" + right + "]"));
    CHECK_FALSE(with(right + "x"));
    CHECK_FALSE(with(right.substr(0, right.size() / 2)));
    CHECK_FALSE(with(""));
    CHECK_FALSE(with("{\"a\": " + std::string(100'000, '[')));
    CHECK_FALSE(with("{\"" + std::string(100'000, 'a') + "\": 1}"));
    // A token is measured before it is taken.
    for (const std::size_t n : {4000, 5000}) {
        std::string quotes, commas;
        for (std::size_t i = 0; i < n / 2; ++i) {
            quotes += "\\\"";
            commas += ",:";
        }
        for (const auto& token : {'"' + commas + '"', '"' + quotes + '"', "0." + std::string(n, '1'),
                                  std::string(n, ' ') + "1", '"' + std::string(n, '[') + '"'})
            CHECK(swapped("\"step\"", "\"x\": " + token + ", \"step\"") == (n < 4096));
    }
    // Larger than its ranks could need: not read at all.
    CHECK_FALSE(with(right + std::string(3 << 20, ' ')));
}

TEST_CASE("links of /proc lead nowhere", "[ckptd]") {
    const temporary t;
    fs::create_directory(t.dir());
    const banyan::unique_fd held(::open(t.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const auto inside = fmt::format("/proc/self/fd/{}", held.get());
    CHECK_FALSE(prepare_directory(self(), inside));
    CHECK_FALSE(prepare_directory(self(), inside + "/new/one"));
    CHECK_FALSE(fs::exists(t.path / "new"));
    CHECK_FALSE(list_steps(self(), inside + "/ckpt"));
    fs::create_symlink(inside, t.path / "link");
    CHECK_FALSE(prepare_directory(self(), (t.path / "link/x").string()));
    // A link of the user's own stays his to set.
    fs::create_symlink(t.dir(), t.path / "mine");
    CHECK(prepare_directory(self(), (t.path / "mine").string()));
}

TEST_CASE("removing a step takes what banyan put there, through no link", "[ckptd]") {
    const temporary t;
    write_step(t.dir(), 1, 1);
    fs::create_directories(t.path / "elsewhere");
    std::ofstream(t.path / "elsewhere/precious") << "x";
    fs::create_symlink(t.path / "elsewhere", t.dir() + "/step-000000000001/link");
    write_step(t.dir(), 2, 1);
    CHECK(fs::is_symlink(t.dir() + "/step-000000000001/link"));
    CHECK_FALSE(fs::exists(t.dir() + "/step-000000000001/MANIFEST.json"));
    CHECK(fs::exists(t.path / "elsewhere/precious"));
    fs::create_directories(t.dir() + "/step-000000000002/own/deep");
    write_step(t.dir(), 3, 1);
    CHECK(fs::exists(t.dir() + "/step-000000000002/own/deep"));
    CHECK(*list_steps(self(), t.dir()) == std::vector<std::uint64_t>{3});
}

TEST_CASE("as a user the thread has no capability, and gets them back", "[ckptd]") {
    if (::geteuid() != 0) return;
    const auto effective = [] {
        const auto text = banyan::read_file("/proc/thread-self/status", 16 << 10);
        const auto at = text->find("CapEff:");
        return text->substr(at, text->find('\n', at) - at);
    };
    const auto before = effective();
    {
        const auto identity = as_user::take({65534, 65534, {65534}});
        REQUIRE(identity);
        CHECK(effective() == "CapEff:\t0000000000000000");
        CHECK(::open("/proc/1/environ", O_RDONLY | O_CLOEXEC) < 0);
    }
    CHECK(effective() == before);
}

TEST_CASE("memory that was given away is freed under its holder", "[ckptd]") {
    auto budget = std::make_shared<memory_budget>(8 << 20);
    auto memory = shard_memory::make(budget, "one", 4 << 20);
    REQUIRE(memory);
    const banyan::unique_fd kept(::fcntl((*memory)->fd(), F_DUPFD_CLOEXEC, 0));
    void* at = ::mmap(nullptr, 4 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, kept.get(), 0);
    REQUIRE(at != MAP_FAILED);
    const banyan::mapping map(at, 4 << 20);
    std::memset(at, 1, 4 << 20);
    const auto held = [&] {
        struct stat st {};
        return ::fstat(kept.get(), &st) == 0 ? st.st_blocks * 512 : -1;
    };
    CHECK(::fcntl(kept.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0);
    CHECK(held() == 4 << 20);
    (*memory)->share();
    memory->reset();  // on a thread of its own, since its holder may keep the file busy
    CHECK(banyan::testing::eventually([&] { return budget->used() == 0; }));
    CHECK(held() == 0);
}

TEST_CASE("large memory goes in the background, and who needs its room waits for it", "[ckptd]") {
    auto budget = std::make_shared<memory_budget>(200u << 20);
    for (int i = 0; i < 3; ++i) {
        auto memory = shard_memory::make(budget, "large", 150u << 20);
        REQUIRE(memory);
        memory->reset();
    }
    REQUIRE(banyan::testing::eventually([&] { return budget->leaving == 0; }));
    CHECK(budget->used() == 0);
}

TEST_CASE("the memory limit holds, and memory comes back", "[ckptd]") {
    auto budget = std::make_shared<memory_budget>(3 << 20);
    auto first = shard_memory::make(budget, "one", 2 << 20);
    REQUIRE(first);
    CHECK(budget->used() == 2 << 20);
    CHECK_FALSE(shard_memory::make(budget, "two", 2 << 20));
    CHECK_FALSE(shard_memory::make(budget, "huge", UINT64_MAX / 2));
    CHECK(::ftruncate((*first)->fd(), 0) != 0);  // the size is sealed
    first->reset();
    CHECK(budget->used() == 0);
    CHECK(shard_memory::make(budget, "two", 2 << 20));
}

}  // namespace test_store
