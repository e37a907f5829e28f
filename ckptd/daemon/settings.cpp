// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/settings.hpp"

#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "ckptd/protocol/protocol.hpp"
#include "common/config.hpp"

namespace banyan::ckpt {

std::string short_host_name() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    const std::string full(name.data());
    return full.substr(0, full.find('.'));
}

result<settings> load_settings(const std::filesystem::path& path, const std::string& node) {
    settings s;
    s.node = node.empty() ? short_host_name() : node;
    BANYAN_TRY(const auto file, config_file::load(path));
    auto own = file.section("ckptd");
    s.socket = socket_path(own.string("socket", s.socket), s.node);
    s.bind = own.string("bind", s.bind);
    s.port = static_cast<std::uint16_t>(own.integer("port", s.port, 1, 65535));
    s.lease = own.duration("lease", s.lease);
    s.complete_within = own.duration("complete_within", s.complete_within);
    s.memory_limit = own.bytes("memory_limit", s.memory_limit);
    s.job_memory_limit = own.bytes("job_memory_limit", s.job_memory_limit);
    s.keep = static_cast<std::uint32_t>(own.integer("keep", s.keep, 1, 1000));
    s.threads = static_cast<std::uint32_t>(own.integer("threads", s.threads, 1, 64));
    s.storage_threads = static_cast<std::uint32_t>(own.integer("storage_threads", s.storage_threads, 1, 64));
    s.log_level = own.string("log_level", s.log_level);
    BANYAN_CHECK(own.finish());
    auto munge = file.section("munge");
    s.munge_socket = socket_path(munge.string("socket", ""), s.node);
    BANYAN_CHECK(munge.finish());
    auto peers = file.section("peers");
    s.encrypt = peers.boolean("encrypt", s.encrypt);
    BANYAN_CHECK(peers.finish());
    return s;
}

std::string dump_settings(const settings& s) {
    return fmt::format(
        "# node {}\n[munge]\nsocket = \"{}\"\n\n[peers]\nencrypt = {}\n\n[ckptd]\nsocket = \"{}\"\nbind = "
        "\"{}\"\nport = {}\nlease = "
        "\"{}ms\"\n"
        "complete_within = \"{}ms\"\n"
        "memory_limit = \"{}\"\njob_memory_limit = \"{}\"\nkeep = {}\nthreads = {}\nstorage_threads = "
        "{}\nlog_level = \"{}\"\n",
        s.node, s.munge_socket, s.encrypt, s.socket, s.bind, s.port, s.lease.count(),
        s.complete_within.count(), s.memory_limit, s.job_memory_limit, s.keep, s.threads, s.storage_threads,
        s.log_level);
}

}  // namespace banyan::ckpt
