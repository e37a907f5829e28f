// SPDX-License-Identifier: BSD-3-Clause
#include "ckptd/daemon/settings.hpp"

#include <array>

#include <fmt/format.h>
#include <unistd.h>

#include "common/config.hpp"
#include "common/peer/config_fields.hpp"

namespace banyan::ckpt {

std::string short_host_name() {
    std::array<char, 256> name{};
    ::gethostname(name.data(), name.size() - 1);
    const std::string full(name.data());
    return full.substr(0, full.find('.'));
}

namespace {

// What reads the tables and what writes them.
template <class Section, class Settings>
void ckptd_fields(Section& section, Settings& s) {
    section.field("socket", s.socket);
    section.field("bind", s.bind);
    section.field("port", s.port);
    section.field("retention", s.retention);
    section.field("commit_warning_after", s.commit_warning_after);
    section.field("restore_timeout", s.restore_timeout);
    section.field("memory_limit", s.memory_limit);
    section.field("job_memory_limit", s.job_memory_limit);
    section.field("huge_pages", s.huge_pages);
    section.field("keep", s.keep);
    section.field("threads", s.threads);
    section.field("storage_threads", s.storage_threads);
    section.field("metrics", s.metrics);
    section.field("log_level", s.log_level);
}

}  // namespace

result<settings> load_settings(const std::filesystem::path& path, const std::string& node) {
    settings s;
    s.node = node.empty() ? short_host_name() : node;
    BANYAN_TRY(const auto file, config_file::load(path));
    const auto own = file.section("ckptd", s.node), munge = file.section("munge", s.node),
               peers = file.section("peers", s.node);
    for (const auto& section : {own, munge, peers}) BANYAN_CHECK(section.check());
    ckptd_fields(own, s);
    peer::munge_fields(munge, s);
    peer::peers_fields(peers, s);
    // Its own part checks that table.
    s.agent_socket = file.section("fault", s.node).text("agent_socket");
    return s;
}

std::string dump_settings(const settings& s) {
    config_text munge("munge"), peers("peers"), own("ckptd");
    peer::munge_fields(munge, s);
    peer::peers_fields(peers, s);
    ckptd_fields(own, s);
    return fmt::format("# node {}\n{}\n{}\n{}", s.node, munge.text(), peers.text(), own.text());
}

}  // namespace banyan::ckpt
