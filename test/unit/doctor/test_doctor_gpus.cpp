// SPDX-License-Identifier: BSD-3-Clause
//
// What banyan-doctor says of GPUs, by mocks of NVIDIA's libraries.
#include <cstdlib>

#include <catch2/catch.hpp>

#include "doctor/gpus.hpp"
#include "scratch_folder.hpp"
#include "test/built.hpp"

namespace test_doctor_gpus {

using namespace banyan::doctor;

namespace {

/// A host with two GPUs, both well.
struct host {
    folder root;
    gpu_place place{root.path, banyan::testing::built("fake_nvml"), banyan::testing::built("mock_nvidia"),
                    banyan::testing::built("mock_nvidia")};

    explicit host(const char* gpus = "ww", const char* wrong = "") {
        for (const char* name : {"0000:1a:00.0", "0000:1b:00.0"}) add(name, "0x10de", "0x030200");
        add("0000:3b:00.0", "0x15b3", "0x020700");  // an HCA
        std::filesystem::create_directories(root.path / "proc/driver/nvidia");
        root.write("proc/driver/nvidia/version",
                   "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Oct  1 2026\nGCC "
                   "version: 12.2.0\n");
        ::setenv("FAKE_NVML", gpus, 1);
        ::setenv("BANYAN_MOCK", wrong, 1);
    }
    ~host() { ::unsetenv("FAKE_NVML"), ::unsetenv("BANYAN_MOCK"); }
    void add(const std::string& name, const char* vendor, const char* kind) const {
        const auto device = "sys/bus/pci/devices/" + name;
        std::filesystem::create_directories(root.path / device);
        root.write(device + "/vendor", vendor);
        root.write(device + "/class", kind);
    }
    void empty_bus() const {
        std::filesystem::remove_all(root.path / "sys/bus/pci/devices/0000:1a:00.0");
        std::filesystem::remove_all(root.path / "sys/bus/pci/devices/0000:1b:00.0");
        std::filesystem::remove_all(root.path / "proc");
    }
    findings look() const { return look_at_gpus(place); }
};

std::string text(const findings& found) { return as_text(found, "n01", true); }

verdict of(const findings& found, const std::string& subject) {
    for (const auto& f : found)
        if (f.subject == subject) return f.is;
    FAIL("nothing is said of " << subject << ":\n" << text(found));
    return verdict::unknown;
}

}  // namespace

TEST_CASE("a line each for GPUs, driver, NCCL and copies from the GPUs", "[doctor]") {
    const host h;
    const auto found = h.look();
    INFO(text(found));
    CHECK(found.size() == 4);
    CHECK(count(found, verdict::fine) == 4);
    for (const char* told : {"GPUs: 2: 00000000:01:00.0, 00000000:02:00.0", "GPU driver: 580.159.04",
                             "NCCL: 2.28.3", "to and from each of 2 came back as it went"})
        CHECK(text(found).find(told) != std::string::npos);
}

TEST_CASE("a GPU that is lost, or from which copies fail, is wrong", "[doctor]") {
    CHECK(of(host("wl").look(), "GPUs") == verdict::wrong);
    CHECK(of(host("wq").look(), "GPUs") == verdict::wrong);
    const char* const copies = "checkpoints from GPUs";
    CHECK(of(host("ww", "copy").look(), copies) == verdict::wrong);
    CHECK(of(host("ww", "ecc").look(), copies) == verdict::wrong);
    CHECK(of(host("ww", "crash").look(), copies) == verdict::unknown);
    host late("ww", "hang");
    late.place.patience = std::chrono::seconds(2);
    CHECK(of(late.look(), copies) == verdict::unknown);
    host without;
    without.place.cuda = "/nowhere/libcuda.so.1";
    CHECK(of(without.look(), copies) == verdict::wrong);
}

TEST_CASE("no copy is tried where a program computes on a GPU", "[doctor]") {
    const auto found = host("wu", "crash").look();
    CHECK(of(found, "checkpoints from GPUs") == verdict::note);
    CHECK(exit_code(found) == 0);
}

TEST_CASE("NCCL may come with the programs", "[doctor]") {
    host h;
    h.place.nccl = "/nowhere/libnccl.so.2";
    CHECK(of(h.look(), "NCCL") == verdict::note);
}

TEST_CASE("nothing is wrong with a host without a GPU", "[doctor]") {
    host h;
    h.empty_bus();
    h.place.nvml = h.place.cuda = h.place.nccl = "/nowhere/lib.so";
    const auto found = h.look();
    CHECK(found.size() == 1);
    CHECK(count(found, verdict::fine) == 1);
    std::filesystem::remove_all(h.root.path / "sys/bus/pci");  // nor with one without such a bus
    CHECK(count(h.look(), verdict::fine) == 1);
    std::filesystem::remove_all(h.root.path / "sys");  // what cannot be looked at is not none
    CHECK(of(h.look(), "GPUs") == verdict::unknown);
}

TEST_CASE("GPUs on the bus that no library sees", "[doctor]") {
    CHECK(of(host("none").look(), "GPUs") == verdict::wrong);  // the driver is not loaded
    CHECK(of(host("").look(), "GPUs") == verdict::wrong);
    host h;
    h.place.nvml = "/nowhere/libnvidia-ml.so.1";
    CHECK(of(h.look(), "GPUs") == verdict::unknown);
}

}  // namespace test_doctor_gpus
