# SPDX-License-Identifier: BSD-3-Clause
"""The store of banyan://: each operation beside TCPStore's, and peers that are slow, half-open, too many, or mean harm."""

import os
import resource
import socket
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import daemons
import pytest
import torch.distributed as dist
from stores import LIMIT, Lone, free_port

from banyan_ckpt import _store_wire as wire

SOON = timedelta(milliseconds=200)


def everything(store):
    """What each operation answers, and each error's class."""
    said = []

    def tell(operation, *arguments):
        try:
            said.append(getattr(store, operation)(*arguments))
        except Exception as error:  # noqa: BLE001 its class is compared
            said.append(type(error).__name__)
    store.set("a", "1")
    store.set("empty", "")
    for operation, *arguments in [
            ("get", "a"), ("get", "empty"), ("add", "n", 5), ("add", "n", -7), ("get", "n"), ("add", "a", 1), ("check", ["a", "n"]), ("check", ["a", "no"]),
            ("check", []), ("wait", ["a", "n"]), ("wait", ["a", "no"], SOON), ("compare_set", "new", "", "x"), ("compare_set", "new", "x", "y"),
            ("compare_set", "new", "x", "z"), ("compare_set", "no", "x", "y"), ("check", ["no"]), ("append", "new", "+"), ("get", "new"),
            ("append", "begun", "b"), ("get", "begun"), ("multi_set", ["m1", "m2"], ["1", "2"]), ("multi_get", ["m2", "m1"]), ("multi_get", []),
            ("delete_key", "m1"), ("delete_key", "m1"), ("check", ["m1"]), ("has_extended_api",), ("barrier", "here", 1, LIMIT)]:
        tell(operation, *arguments)
    store.set_timeout(SOON)
    tell("get", "no")
    tell("multi_get", ["a", "no"])
    store.clone().set("cloned", "c")
    tell("get", "cloned")
    keys = [store.num_keys()]
    store.set("one more", "1")
    return said, store.num_keys() - keys[0], store.timeout


def test_every_operation_answers_as_tcpstore_does():
    ours = everything(Lone().store(0))
    assert ours == everything(dist.TCPStore("127.0.0.1", 0, None, True, LIMIT, wait_for_workers=False))
    assert ours == everything(dist.PrefixStore("by C++", Lone().store(0)))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "::1"])
def test_names_and_addresses_of_both_families(host):
    if host == "::1" and not socket.has_dualstack_ipv6():
        pytest.skip("this host has no IPv6")
    assert Lone().store(1, host=host).add("n", 1) == 1


def test_a_timeout_names_the_keys_that_are_missing():
    store = Lone().store(2)
    store.set("there", "1")
    with pytest.raises(dist.DistStoreError, match=r"rank 2: timeout: after 0.2 s nobody has set 'no', 'nor this'$"):
        store.wait(["there", "no", "nor this"], SOON)
    with pytest.raises(dist.DistStoreError, match="'7' and 2 more keys$"):
        store.wait([str(i) for i in range(10)], SOON)
    assert store.get("there") == b"1"  # the connection is in step
    with ThreadPoolExecutor(1) as thread, pytest.raises(dist.DistStoreError, match="nobody has set 'no'$"):
        thread.submit(store.wait, ["there", "no"], timedelta(microseconds=1)).result()


def test_a_wait_stalls_no_other_thread():
    store = Lone().store(0)
    with ThreadPoolExecutor(8) as threads:
        waits = [threads.submit(store.get, f"late {i}") for i in range(8)]
        for i in range(8):
            assert store.add("n", 1) == i + 1
        assert not any(wait.done() for wait in waits)
        for i in range(8):
            store.set(f"late {i}", str(i))
        assert [wait.result(60) for wait in waits] == [b"%d" % i for i in range(8)]


def test_a_thousand_ranks():
    lone, world = Lone(1000), 1000
    stores = [lone.store(rank) for rank in range(world)]
    with ThreadPoolExecutor(world) as threads:
        every = [str(rank) for rank in range(world)]
        gets = [threads.submit(store.multi_get, every) for store in stores]
        for rank in reversed(range(world)):
            stores[rank].set(str(rank), str(rank))
        assert all(get.result(60) == [name.encode() for name in every] for get in gets)


def test_values_up_to_the_limit_and_answers_in_parts():
    store = Lone().store(0)
    big = {f"k{i}": bytes([i]) * (wire.MAX_VALUE - 100) for i in range(5)}
    for key, value in big.items():
        store.set(key, value)
    assert store.multi_get(list(big)) == list(big.values())
    with pytest.raises(dist.DistStoreError, match="the value of 'k0' has"):
        store.append("k0", b"x" * 101)
    with pytest.raises(dist.DistStoreError, match="a request may have"):
        store.set("much", b"x" * (wire.MAX_FRAME + 1))
    with pytest.raises(dist.DistStoreError, match="no number of 64 bits"):
        store.add("k1", 1)
    store.set("high", str(2**63 - 1))
    with pytest.raises(dist.DistStoreError, match="no number of 64 bits"):
        store.add("high", 1)
    assert store.get("high") == b"%d" % (2**63 - 1)


HELLO = b"".join(wire.encode(wire.HELLO, [wire.MAGIC, b"test", b"3", b"m" * 16, b""]))


@pytest.mark.parametrize("sent", [
    b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\x20\0", HELLO[:4] + b"\x63" + HELLO[5:], b"\0\0\0\1\0", HELLO + HELLO,
    HELLO + b"\xff" * 8, HELLO + b"\0\0\0\3\1\0\0", HELLO + b"\0\0\0\x09\1\0\0\0\x09okay", HELLO + b"".join(wire.encode(wire.SET, [b"k"])),
    HELLO + b"".join(wire.encode(99)), HELLO + b"".join(wire.encode(wire.ADD, [b"k"])), HELLO + 2 * b"".join(wire.encode(wire.GET, [b"k"])),
    HELLO + (5 * 70000 + 1).to_bytes(4, "big") + b"\2" + 70000 * b"\0\0\0\1k"], ids=lambda sent: repr(sent[:24] + sent[-8:]))
def test_what_makes_no_sense_ends_its_connection_alone(sent):
    lone = Lone()
    store = lone.store(0)
    with lone.raw(sent) as hostile:
        while hostile.recv(1 << 16):  # until the server hangs up
            pass
    assert store.add("n", 1) == 1


def test_half_open_peers_and_those_that_do_not_read():
    lone = Lone()
    store = lone.store(0)
    store.set("big", b"x" * wire.MAX_VALUE)
    get = b"".join(wire.encode(wire.GET, [b"big"]))
    silent = [lone.raw(), lone.raw(HELLO[:9]), lone.raw(HELLO, get), lone.raw(HELLO, get[:-1]), lone.raw(HELLO, b"\0\xff\0\0" + b"x" * 70000)]
    for i in range(100):
        assert store.add("n", 1) == i + 1
    lone.store(1).set("k", "v")
    # Who reads late has it all the same; CANCEL for what is answered changes nothing.
    silent[2].sendall(b"".join(wire.encode(wire.CANCEL)))
    received = bytearray()
    while len(received) < wire.MAX_VALUE:
        received += silent[2].recv(1 << 20)
    silent[2].sendall(b"".join(wire.encode(wire.COUNT)))
    daemons.until(lambda: received.extend(silent[2].recv(1 << 20)) or received.endswith(b"\0\0\0\x013"), "the answer that follows")
    for connection in silent:
        connection.close()


def test_who_asks_on_without_reading_is_hung_up_on():
    lone = Lone()
    store = lone.store(0)
    for key in ("k1", "k2"):
        store.set(key, b"x" * (wire.MAX_VALUE - 100))
    get = b"".join(wire.encode(wire.GET, [b"k1", b"k2"]))  # more than the kernel keeps for a connection
    with lone.raw(HELLO, get) as hostile:
        daemons.until(lambda: sum(len(part) for c in list(lone.server._connections) for part in list(c.out)) > 1 << 20, "an answer that is not read")
        hostile.sendall(get)
        daemons.until(lambda: len(lone.server._connections) == 1, "only the store's own connection is left")
    assert store.add("n", 1) == 1


def test_a_rank_that_dies_in_a_wait_is_forgotten():
    lone = Lone()
    store = lone.store(0)
    with lone.raw(HELLO, b"".join(wire.encode(wire.GET, [b"late"]))) as dying:
        dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # it ends with a reset
    store.set("late", "1")
    assert store.get("late") == b"1"


def serve_with_few_descriptors(kept, port):
    from banyan_ckpt._store_server import Server
    few = max(map(int, os.listdir("/proc/self/fd"))) + 40
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
    kept["server"] = Server(port, "test", 4)


def test_strangers_that_take_all_descriptors_make_room(lab):
    lone = Lone.__new__(Lone)
    lone.port = free_port()
    lab.rank({}).run(serve_with_few_descriptors, lone.port)
    strangers = [lone.raw() for _ in range(200)]
    assert lone.store(1).add("n", 1) == 1
    strangers += [lone.raw() for _ in range(200)]
    assert lone.store(2).add("n", 1) == 2
    for stranger in strangers:
        stranger.close()

