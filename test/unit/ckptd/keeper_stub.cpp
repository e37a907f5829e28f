// SPDX-License-Identifier: BSD-3-Clause
//
// In a daemon's place below a keeper: each start does what the next line of FOLDER/script says, and
// FOLDER/log gets a line when it has read what it is given.
//
//     exit N       says why it cannot start
//     die          of a signal, before it has read anything
//     read, die    of one after that
//     serve        with all that it was given, and a memory and a lock if it was given none
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "ckptd/keeper/custody.hpp"

using namespace banyan::ckpt::keeper;

namespace {

/// The first line, which is taken out; the last one stays.
std::string next_line(const std::string& path) {
    std::vector<std::string> lines;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    if (lines.empty()) return "exit 9";
    std::ofstream rest(path + ".new");
    for (std::size_t i = lines.size() == 1 ? 0 : 1; i < lines.size(); ++i) rest << lines[i] << '\n';
    rest.close();
    std::rename((path + ".new").c_str(), path.c_str());
    return lines.front();
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    const std::string folder = argv[1];
    const auto what = next_line(folder + "/script");
    if (what == "die") ::raise(SIGKILL);
    const auto keeper = custody::from_environment();
    const auto given = keeper->take();
    const auto count = [&](contents of) {
        return std::count_if(given.begin(), given.end(), [&](const auto& one) { return one.what == of; });
    };
    const auto shards = count(contents::shards), locks = count(contents::lock);
    std::ofstream(folder + "/log", std::ios::app)
        << what << ": " << shards << ' ' << locks << ' ' << ::getpid() << std::endl;
    if (what.starts_with("exit ")) return std::atoi(what.c_str() + 5);
    if (what == "read, die") ::raise(SIGKILL);
    const banyan::unique_fd memory(::memfd_create("banyan-test", MFD_CLOEXEC));
    if (shards == 0) keeper->hold(contents::shards, memory.get());
    if (locks == 0) keeper->hold(contents::lock, memory.get());
    keeper->ready(false);
    for (;;) ::pause();
}
