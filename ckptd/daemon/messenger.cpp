// SPDX-License-Identifier: BSD-3-Clause

#include "ckptd/daemon/messenger.hpp"

#include <fmt/format.h>

#include "ckptd/net/peer.hpp"

namespace banyan::ckpt {
namespace {

constexpr milliseconds tell_timeout{2000};

}  // namespace

messenger::messenger(daemon_core& core, peer::listener::server serve)
    : core_(core),
      listener_(core.io.get_executor(),
                peer::settings::of(peer_role, core.config.node, core.config.munge_socket, core.config.encrypt,
                                   core.munge, core.workers),
                {}, std::move(serve)) {}

std::shared_ptr<link> messenger::link_to(const session_node& node, bool bulk) {
    auto& known = links_[{node.name, node.addr, bulk}];
    if (!known) known = new_link(node);
    return known;
}

std::shared_ptr<link> messenger::new_link(const session_node& node) {
    return std::make_shared<link>(
        core_.io.get_executor(),
        link_options{node.name, node.addr, core_.config.port, &listener_.handshake()});
}

task<std::optional<answer_meta>> messenger::ask_leader(session_ptr s, peer_message type, json meta,
                                                       milliseconds timeout) {
    answer_meta last = fail(errc::unavailable, fmt::format("job {}: no daemon answers", s->job()));
    for (std::size_t i = 0; i < s->request.nodes.size(); ++i) {
        if (s->request.nodes[i].name == s->self()) co_return std::nullopt;
        const auto to = link_to(s->request.nodes[i], false);
        last = co_await to->call(type, meta, timeout);
        // Dead, or alive without a session: the next one leads, for everybody alike.
        if (last || (last.error().code != errc::unavailable && last.error().code != errc::not_found)) break;
    }
    co_return last;
}

task<void> messenger::tell(session_ptr s, session_node to, peer_message type, json meta) {
    auto told = co_await link_to(to, false)->call(type, std::move(meta), tell_timeout);
    if (!told) spdlog::debug("job {}: {} did not hear: {}", s->job(), to.name, told.error().text());
}

void messenger::broadcast(const session_ptr& s, peer_message type, json meta) {
    for (const auto& n : s->request.nodes)
        if (n.name != s->self()) core_.spawn(tell(s, n, type, meta));
}

}  // namespace banyan::ckpt
