// SPDX-License-Identifier: BSD-3-Clause
//
// What anybody may send to a daemon's TCP port before he has proved who he is: the listener's side of the
// handshake, on a connection on loopback. Nobody is let in, and the end comes when the caller has said all.
#include <boost/asio/io_context.hpp>
#include <sys/socket.h>

#include "common/peer/handshake.hpp"
#include "common/peer/statement.hpp"
#include "test/fuzz/fuzz_input.hpp"

using namespace banyan;
using fuzz::must;
using tcp = boost::asio::ip::tcp;

namespace {

struct world {
    asio::thread_pool munge{1}, pool{1};
    peer::settings settings =
        peer::settings::of("ckptd", "a", "/nonexistent/munge.socket", false, munge, pool);
    asio::io_context io;
    tcp::acceptor acceptor{io, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)};
};

task<void> listen(tcp::socket& socket, const peer::settings& o, bool& let_in) {
    const auto channel = co_await peer::accept_peer(socket, o);
    let_in = channel && *channel;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static auto& w = *new world;
    const auto text = fuzz::as_text(data, size);
    if (peer::check_node_name(std::string(text))) must(size <= peer::max_node_name && size > 0);
    if (size > 65536) return 0;  // what the socket takes at once
    w.settings.timeout = std::chrono::seconds(5);
    tcp::socket caller(w.io), socket(w.io);
    caller.connect(w.acceptor.local_endpoint());
    w.acceptor.accept(socket);
    must(::send(caller.native_handle(), data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
    caller.shutdown(tcp::socket::shutdown_send);
    bool ended = false, let_in = false;
    asio::co_spawn(w.io, listen(socket, w.settings, let_in), [&](std::exception_ptr e) { ended = !e; });
    w.io.restart();
    w.io.run_for(std::chrono::seconds(15));
    must(ended && !let_in);
    return 0;
}
