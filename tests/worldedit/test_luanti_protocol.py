"""The wire: primitive values, the reliable layer, login, messages, and what hostile packets do to them."""

import hashlib
import random
import struct
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from orrery_worldedit.games.luanti import messages, protocol, srp, view
from orrery_worldedit.games.luanti import observations as seen
from orrery_worldedit.games.luanti.definitions import parse_items, parse_nodes, parse_tool_caps
from orrery_worldedit.games.luanti.protocol import Connection, Reader, WireError, inflate
from orrery_worldedit.games.luanti.view import View

# -- primitive values


@given(st.text(max_size=200), st.binary(max_size=200), st.integers(0, 0xFFFF), st.integers(0, 0xFFFFFFFF))
def test_values_come_back_as_written(text: str, data: bytes, small: int, large: int) -> None:
    packed = (
        protocol.str16(text.encode("utf-8", "replace"))
        + protocol.str32(data)
        + protocol.u16(small)
        + protocol.u32(large)
    )
    reader = Reader(packed)
    assert reader.str16() == text.encode("utf-8", "replace").decode()
    assert (reader.bytes32(), reader.u16(), reader.u32(), reader.left) == (data, small, large, 0)


@given(st.text(max_size=100))
def test_chat_text_survives_beyond_the_first_plane(text: str) -> None:
    written = text.encode("utf-8", "replace").decode()
    assert Reader(protocol.wide(written)).wide() == written


def test_positions_are_read_in_nodes() -> None:
    assert Reader(struct.pack(">fff", 5, -10, 165)).point() == (0.5, -1.0, 16.5)
    assert Reader(protocol.v3s16((1, -2, 3))).v3s16() == (1, -2, 3)


@pytest.mark.parametrize("read", ["u8", "u16", "u32", "u64", "f32", "v3f", "v3s16", "str16", "str32", "wide"])
def test_reading_past_the_end_is_a_wire_error(read: str) -> None:
    with pytest.raises(WireError):
        getattr(Reader(b"\x01"[: 0 if read == "u8" else 1]), read)()


def test_a_length_beyond_the_packet_is_a_wire_error() -> None:
    with pytest.raises(WireError):
        Reader(b"\xff\xff\xff\xffabc").bytes32()


def test_inflate_stops_at_the_limit_and_at_broken_streams() -> None:
    bomb = zlib.compress(bytes(10_000_000))
    assert inflate(zlib.compress(b"abc") + b"rest") == (b"abc", b"rest")
    for data in (bomb, zlib.compress(b"abc")[:-2], b"no zlib", b""):
        with pytest.raises(WireError):
            inflate(data, 1_000_000)


# -- the reliable layer


class Line:
    """Two connections with an unreliable line between them."""

    def __init__(self, seed: int, loss: float) -> None:
        self.random = random.Random(seed)
        self.loss = loss
        self.wires: tuple[list[bytes], list[bytes]] = ([], [])
        self.ends = tuple(Connection(wire.append) for wire in self.wires)
        self.received: tuple[list[bytes], list[bytes]] = ([], [])
        self.now = 0.0

    def run(self) -> None:
        """Deliver with loss, doubling and disorder until both ends are idle."""
        for _ in range(2000):
            if all(end.idle for end in self.ends) and not any(self.wires):
                return
            for sender, receiver in ((0, 1), (1, 0)):
                packets = self.wires[sender][:]
                self.wires[sender].clear()
                packets += [packet for packet in packets if self.random.random() < 0.2]
                self.random.shuffle(packets)
                for packet in packets:
                    if self.random.random() >= self.loss:
                        self.received[receiver].extend(self.ends[receiver].receive(packet))
            self.now += protocol.RESEND_S + 0.1
            for end in self.ends:
                end.upkeep(self.now)
        raise AssertionError("the line never came to rest")


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.5), st.lists(st.integers(0, 2000), min_size=1, max_size=60))
def test_commands_arrive_once_and_in_order_over_a_bad_line(seed: int, loss: float, sizes: list[int]) -> None:
    line = Line(seed, loss)
    bodies = [index.to_bytes(2, "big") + bytes([index % 251]) * size for index, size in enumerate(sizes)]
    for body in bodies:
        line.ends[0].send(body, 0, line.now)
    line.run()
    assert line.received[1] == bodies
    assert not line.ends[1].faults


def test_sequence_numbers_wrap() -> None:
    line = Line(1, 0.0)
    bodies = [index.to_bytes(4, "big") for index in range(1000)]  # the first number is close to the end
    for start in range(0, len(bodies), 100):
        for body in bodies[start : start + 100]:
            line.ends[0].send(body, 1, line.now)
        line.run()
    assert line.received[1] == bodies


def _datagram(packet: bytes, channel: int = 0) -> bytes:
    return struct.pack(">IHB", protocol.PROTOCOL_ID, 1, channel) + packet


def _part(number: int, count: int, index: int, body: bytes) -> bytes:
    return _datagram(struct.pack(">BHHH", protocol.SPLIT, number, count, index) + body)


def test_reassembly_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_BUFFERED", 50_000)
    connection = Connection(lambda _: None)
    for number in range(1000):
        connection.receive(_part(number, 65535, 0, bytes(1000)))
        assert connection._buffered <= 50_000
        assert len(connection._channels[0].splits) <= protocol.MAX_SPLITS
    assert connection.faults


def test_the_reorder_buffer_is_bounded_and_recovers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "MAX_BUFFERED", 5_000)
    sent: list[bytes] = []
    sender = Connection(sent.append)
    bodies = [index.to_bytes(2, "big") + bytes(300) for index in range(100)]
    for body in bodies:
        sender.send(body, 0, 0.0)
    replies: list[bytes] = []
    receiver = Connection(replies.append)
    got = [body for packet in reversed(sent) for body in receiver.receive(packet)]
    for _ in range(20):
        for reply in replies:
            sender.receive(reply)
        sent.clear(), replies.clear()
        sender.upkeep(1e9)
        got += [body for packet in sent for body in receiver.receive(packet)]
    assert got == bodies
    assert receiver._buffered == 0


def test_a_message_that_changes_its_number_of_parts_is_dropped() -> None:
    connection = Connection(lambda _: None)
    connection.receive(_part(7, 3, 0, b"a"))
    assert connection.receive(_part(7, 2, 1, b"b")) == []
    assert "changed" in connection.faults[0]
    assert connection._buffered == 0


def test_a_broken_packet_does_not_hold_up_the_ones_behind_it() -> None:
    connection = Connection(lambda _: None)
    head = struct.pack(">BH", protocol.RELIABLE, protocol.FIRST_SEQUENCE)
    second = struct.pack(">BH", protocol.RELIABLE, protocol.FIRST_SEQUENCE + 1)
    connection.receive(_datagram(head + bytes([protocol.SPLIT])))
    assert connection.receive(_datagram(second + bytes([protocol.ORIGINAL]) + b"ok")) == [b"ok"]


def test_nested_reliable_packets_are_refused() -> None:
    connection = Connection(lambda _: None)
    packet = b"".join(
        struct.pack(">BH", protocol.RELIABLE, protocol.FIRST_SEQUENCE + depth % 30) for depth in range(20_000)
    )
    assert connection.receive(_datagram(packet)) == []
    assert connection.faults


@settings(max_examples=300)
@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 3))
def test_random_datagrams_never_raise(packets: list[bytes], channel: int) -> None:
    connection = Connection(lambda _: None)
    for packet in packets:
        connection.receive(packet)
        connection.receive(_datagram(packet, channel))
    connection.upkeep(0.0)
    assert connection._buffered <= sum(map(len, packets))


# -- login


class Account:
    """The server's side of a login, after RFC 5054."""

    def __init__(self, name: str, password: str) -> None:
        self.name, self.salt = name, bytes(range(16))
        self.verifier = int.from_bytes(srp.make_verifier(name, password, self.salt), "big")
        self.secret = 0xABCDEF
        n = srp._PRIME
        self.k = int.from_bytes(
            hashlib.sha256(n.to_bytes(256, "big") + (2).to_bytes(256, "big")).digest(), "big"
        )
        self.public = (self.k * self.verifier + pow(2, self.secret, n)) % n

    def proof(self, client_public: bytes) -> bytes:
        n, digest = srp._PRIME, lambda *parts: hashlib.sha256(b"".join(parts)).digest()
        a = int.from_bytes(client_public, "big")
        u = int.from_bytes(digest(a.to_bytes(256, "big"), self.public.to_bytes(256, "big")), "big")
        key = digest(srp._raw(pow(a * pow(self.verifier, u, n), self.secret, n)))
        group = bytes(x ^ y for x, y in zip(digest(srp._raw(n)), digest(b"\2"), strict=True))
        return digest(group, digest(self.name.encode()), self.salt, srp._raw(a), srp._raw(self.public), key)


@pytest.mark.parametrize(("name", "password"), [("alice", ""), ("Bob_9", "hunter2")])
def test_client_and_server_agree_on_the_proof(name: str, password: str) -> None:
    account = Account(name, password)
    login = srp.Login(name, password, random.Random(3))
    challenge = account.public.to_bytes(256, "big")
    assert login.prove(account.salt, challenge) == account.proof(login.public)
    wrong = srp.Login(name, password + "x", random.Random(3))
    assert wrong.prove(account.salt, challenge) != account.proof(wrong.public)


def test_a_login_is_reproducible_and_refuses_a_challenge_out_of_range() -> None:
    assert srp.Login("a", "", random.Random(1)).public == srp.Login("a", "", random.Random(1)).public
    with pytest.raises(ValueError, match="out of range"):
        srp.Login("a", "", random.Random(1)).prove(b"s", bytes(256))


# -- messages


@settings(max_examples=400)
@given(st.sampled_from(sorted(messages._HANDLERS)), st.binary(max_size=120))
def test_random_messages_become_log_entries(command: int, body: bytes) -> None:
    shown = View("alice")
    messages.handle(shown, protocol.u16(command) + body)
    assert all(entry.data["command"] == command for entry in shown.log if entry.kind == "parse_error")


@settings(max_examples=100)
@given(st.sampled_from([0x3A, 0x3D, 0x59]), st.binary(max_size=200))
def test_random_compressed_messages_become_log_entries(command: int, body: bytes) -> None:
    shown = View("alice")
    messages.handle(shown, protocol.u16(command) + protocol.str32(zlib.compress(body)))
    assert shown.counts == {command: 1}


def test_a_parse_error_names_the_command_and_keeps_the_state() -> None:
    shown = View("alice")
    messages.handle(shown, protocol.u16(0x33) + protocol.u16(17))
    messages.handle(shown, protocol.u16(0x33) + b"\0")
    messages.handle(shown, b"\0")
    assert shown.hp == 17
    assert [entry.data["command"] for entry in shown.log if entry.kind == "parse_error"] == [0x33, None]


def test_a_decompression_bomb_is_an_error() -> None:
    shown = View("alice")
    bomb = zlib.compress(bytes(protocol.MAX_INFLATED + 1))
    messages.handle(shown, protocol.u16(0x3D) + protocol.str32(bomb))
    assert "more than" in str(shown.log[-1].data["error"])


def test_the_log_and_the_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MAX_LOG_ENTRIES", 10)
    monkeypatch.setattr(view, "MAX_ENTRIES", 5)
    shown = View("alice")
    for number in range(100):
        messages.handle(shown, protocol.u16(0x2F) + b"\1\1" + protocol.wide("") + protocol.wide(str(number)))
        shown.bounded(shown.detached, str(number), {}, view.MAX_ENTRIES)
    assert len(shown.log) == 11
    assert shown.log[-1].kind == "log_full"
    assert len(shown.chat) <= 10
    assert len(shown.detached) == 5


def test_the_log_is_bounded_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "MAX_LOG_BYTES", 100_000)
    shown = View("alice")
    for _ in range(100):
        messages.handle(shown, protocol.u16(0x44) + protocol.str32("x" * 10_000) + protocol.str16("f"))
    assert sum(len(text) for _, text in shown.formspecs) < 100_000


def test_unchanged_slots_of_an_inventory_keep_their_items() -> None:
    shown = View("alice")
    first = (
        "List main 3\nWidth 0\nItem default:dirt 5\nEmpty\nItem default:pick_steel 1 7\nEndInventoryList\n"
    )
    first += "List craft 1\nWidth 1\nItem default:stone\nEndInventoryList\nEndInventory\n"
    second = "List main 3\nWidth 0\nKeep\nItem default:sand\nKeep\nEndInventoryList\n"
    second += "KeepList craft\nEndInventory\n"
    messages.handle(shown, protocol.u16(0x27) + first.encode())
    messages.handle(shown, protocol.u16(0x27) + second.encode())
    assert shown.inventory == {
        "main": ["default:dirt 5", "default:sand", "default:pick_steel 1 7"],
        "craft": ["default:stone"],
    }


def _block(pos: tuple[int, int, int], content: int, meta: bytes = b"\0") -> bytes:
    nodes = struct.pack(">H", content) * 4096 + b"\x0f" * 4096 + bytes(4096)
    head = protocol.v3s16(pos) + b"\0" + protocol.u16(0xFFFF) + b"\2\2"
    return protocol.u16(0x20) + head + zlib.compress(nodes) + zlib.compress(meta) + b"\2"


def test_blocks_single_nodes_and_metadata() -> None:
    shown = View("alice")
    meta = b"\2" + protocol.u16(1) + protocol.u16(2 * 256 + 3 * 16 + 1) + protocol.u32(1)
    meta += (
        protocol.str16("infotext")
        + protocol.str32("hi")
        + b"\1"
        + b"List main 1\nWidth 0\nEmpty\nEndInventoryList\n"
    )
    messages.handle(shown, _block((-1, 0, 2), 126, meta + b"EndInventory\n"))
    assert shown.node((-15, 3, 34)) == "air"
    assert shown.node((0, 3, 34)) is None
    assert shown.meta == {(-15, 3, 34): seen.NodeMeta({"infotext": "hi"}, {"infotext"}, {"main": [""]})}
    messages.handle(shown, protocol.u16(0x21) + protocol.v3s16((-15, 3, 34)) + protocol.u16(125) + b"\0\5\0")
    found = shown.node_at((-15, 3, 34))
    assert found is not None
    assert (found[0].name, found[2], shown.meta) == ("unknown", 5, {})
    messages.handle(shown, protocol.u16(0x22) + protocol.v3s16((-15, 3, 34)))
    assert shown.node((-15, 3, 34)) == "air"


def test_the_map_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_BLOCKS", 4)
    shown = View("alice")
    for x in range(10):
        messages.handle(shown, _block((x, 0, 0), 126))
    assert list(shown.blocks) == [(6, 0, 0), (7, 0, 0), (8, 0, 0), (9, 0, 0)]


def test_physics_overrides_of_old_and_new_servers() -> None:
    shown = View("alice")
    player = b"\1" + protocol.str16("alice") + b"\1" + protocol.u16(7) + bytes(24) + protocol.u16(20)
    old = b"\x09" + struct.pack(">fff", 1.5, 0.5, 0.25) + b"\1\1\0"
    body = player + b"\1" + protocol.str32(old)
    messages.handle(
        shown,
        protocol.u16(0x31)
        + protocol.u16(0)
        + protocol.u16(1)
        + protocol.u16(7)
        + b"\x65"
        + protocol.str32(body),
    )
    assert shown.object_id == 7
    assert (shown.physics.speed, shown.physics.jump, shown.physics.gravity) == (1.5, 0.5, 0.25)
    assert (shown.physics.sneak, shown.physics.speed_walk) == (False, 1.0)
    new = old + struct.pack(">ffffffffff", *range(2, 12))
    messages.handle(shown, protocol.u16(0x32) + protocol.u16(7) + protocol.str16(new))
    assert (shown.physics.speed_climb, shown.physics.acceleration_air, shown.physics.speed_walk) == (2, 8, 11)


def test_tool_capabilities() -> None:
    data = b"\5" + struct.pack(">fhI", 0.8, 2, 1) + protocol.str16("cracky") + struct.pack(">hhI", 20, 2, 2)
    data += (
        struct.pack(">hfhf", 1, 4.0, 3, 0.4)
        + protocol.u32(1)
        + protocol.str16("fleshy")
        + struct.pack(">hH", 4, 60)
    )
    caps = parse_tool_caps(Reader(data))
    assert caps.full_punch_interval == 0.8
    assert caps.groupcaps["cracky"].times == {1: 4.0, 3: 0.4}
    assert (caps.groupcaps["cracky"].uses, caps.damage_groups, caps.punch_attack_uses) == (
        20,
        {"fleshy": 4},
        60,
    )


def test_definitions_of_an_unknown_version_are_refused() -> None:
    with pytest.raises(WireError, match="version"):
        parse_items(b"\0" + protocol.u16(1) + protocol.str16(b"\1"))
    with pytest.raises(WireError, match="version"):
        parse_nodes(b"\1" + protocol.u16(1) + protocol.str32(protocol.u16(5) + protocol.str16(b"\1")))
