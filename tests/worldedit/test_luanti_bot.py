"""The network player: digging times, forms, a hostile peer, and a real server end to end."""

import hashlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from orrery_core.isolation import Isolation
from orrery_worldedit.games.luanti import messages, protocol
from orrery_worldedit.games.luanti.bot import Bot
from orrery_worldedit.games.luanti.definitions import GroupCap, ItemDef, NodeDef, ToolCaps
from orrery_worldedit.games.luanti.digging import DigTime, Stack, dig_time, parse_stack, tool_caps
from orrery_worldedit.games.luanti.formspec import find_widgets, parse_formspec, plain_text
from orrery_worldedit.games.luanti.install import find_install
from orrery_worldedit.games.luanti.world import World

# -- digging

HAND = ToolCaps(groupcaps={"crumbly": GroupCap(0, 1, {3: 0.7})})
PICK = ToolCaps(groupcaps={"cracky": GroupCap(20, 2, {1: 4.0, 2: 1.6, 3: 0.8})})
ITEMS = {"": ItemDef("", tool_capabilities=HAND), "pick": ItemDef("pick", tool_capabilities=PICK)}
STONE = NodeDef("stone", groups={"cracky": 3})


@pytest.mark.parametrize(
    ("groups", "item", "expected"),
    [
        ({"cracky": 3}, "pick", DigTime(0.4, 180, "cracky")),  # two levels above: half the time, 3^2 the uses
        ({"cracky": 2, "level": 1}, "pick", DigTime(1.6, 60, "cracky")),
        ({"cracky": 1, "level": 2}, "pick", DigTime(4.0, 20, "cracky")),
        ({"cracky": 1, "level": 3}, "pick", None),
        ({"cracky": 4}, "pick", None),
        ({"cracky": 3}, "", None),
        ({"crumbly": 3}, "pick", DigTime(0.7, 0, "crumbly")),  # the hand helps out
        ({"crumbly": 3}, "unheard:of 5", DigTime(0.7, 0, "crumbly")),
        ({"dig_immediate": 2}, "", DigTime(0.5, 0, "dig_immediate")),
        ({"dig_immediate": 3, "cracky": 1}, "pick", DigTime(0.0, 0, "dig_immediate")),
        ({}, "pick", None),
    ],
)
def test_dig_time(groups: dict[str, int], item: str, expected: DigTime | None) -> None:
    assert dig_time(NodeDef("n", groups=groups), ITEMS, item) == expected


def test_what_cannot_be_dug() -> None:
    assert dig_time(None, ITEMS, "pick") is None
    assert dig_time(replace(STONE, diggable=False), ITEMS, "pick") is None


def test_the_fastest_group_wins() -> None:
    caps = ToolCaps(groupcaps={"a": GroupCap(5, 1, {1: 3.0}), "b": GroupCap(9, 0, {2: 1.0})})
    items = ITEMS | {"both": ItemDef("both", tool_capabilities=caps)}
    assert dig_time(NodeDef("n", groups={"a": 1, "b": 2}), items, "both") == DigTime(1.0, 9, "b")


def test_a_hand_item_and_metadata_change_the_capabilities() -> None:
    own = r'pick 1 100 "\u0001tool_capabilities\u0002{\"groupcaps\":{\"cracky\":{\"maxlevel\":1,'
    own += r'\"times\":[null,null,null,0.1],\"uses\":10}}}\u0003"'
    assert dig_time(STONE, ITEMS, own) == DigTime(0.1, 30, "cracky")
    assert tool_caps(ITEMS, r'pick 1 0 "\u0001tool_capabilities\u0002{\"groupcaps\":[1]}\u0003"') == PICK
    assert dig_time(STONE, ITEMS, "", hand="pick") == DigTime(0.4, 180, "cracky")


@pytest.mark.parametrize(
    ("text", "stack"),
    [
        ("", Stack()),
        ("default:dirt", Stack("default:dirt", 1)),
        ("default:dirt 7", Stack("default:dirt", 7)),
        ("default:pick 1 364", Stack("default:pick", 1, 364)),
        (r'x:y 1 0 "\u0001a\u0002b c\u0003d\u0002e\u0003"', Stack("x:y", 1, 0, {"a": "b c", "d": "e"})),
        ('x:y 1 0 "broken', Stack("x:y", 1)),
    ],
)
def test_item_strings(text: str, stack: Stack) -> None:
    assert parse_stack(text) == stack


@given(st.text(max_size=60))
def test_any_item_string_can_be_read(text: str) -> None:
    parse_stack(text)
    tool_caps(ITEMS, f'pick 1 0 "\\u0001tool_capabilities\\u0002{text}\\u0003"')


# -- forms

FORM = (
    "formspec_version[4]size[8,9]container[1,2]button[0,0.5;2,1;buy;\x1b(T@shop)Buy \\[now\\]\x1bE]"
    "list[nodemeta:1,2,3;main;0,4;8,1;8]container_end[]field[0.5,1;3,1;price;Price\\;each;12]"
    "dropdown[0,1;2;kind;coal,iron\\, raw,gold;2]tabheader[0,0;1;tabs;A,B;2]"
    "item_image_button[0,0;1,1;default:stone;pick_stone;Stone]button_exit[0,8;2,1;close;Close]"
    "tooltip[buy;Costs 3]checkbox[1,1;loud;Loud;true]"
)


def test_widgets_of_a_form() -> None:
    form = parse_formspec(FORM)
    buy = find_widgets(form, type="button", label="buy")[0]
    assert (buy.name, buy.label, buy.pos) == ("buy", "Buy [now]", (1.0, 2.5))
    assert find_widgets(form, type="list")[0].inventory == ("nodemeta:1,2,3", "main", 8)
    assert find_widgets(form, type="list")[0].pos == (1.0, 6.0)
    field = find_widgets(form, name="price")[0]
    assert (field.type, field.label, field.value, field.pos) == ("field", "Price;each", "12", (0.5, 1.0))
    kind = find_widgets(form, type="dropdown")[0]
    assert (kind.choices, kind.value) == (("coal", "iron, raw", "gold"), "iron, raw")
    assert find_widgets(form, type="tabheader")[0].value == "B"
    assert [widget.name for widget in find_widgets(form, type="button")] == ["buy", "pick_stone", "close"]
    assert find_widgets(form, type="tooltip")[0].label == "Costs 3"
    assert find_widgets(form, type="checkbox")[0].value == "true"


def test_a_bare_field_is_the_whole_form() -> None:
    (widget,) = parse_formspec("field[text;Your text;${text}]")
    assert (widget.name, widget.label, widget.value, widget.pos) == ("text", "Your text", "${text}", None)


@given(st.text(alphabet="abfieldst[];,\\0123.", max_size=80))
def test_any_form_can_be_read(text: str) -> None:
    parse_formspec(text)
    parse_formspec("container[" + text + "]" + FORM)


def test_plain_text_has_no_colours_or_translation_marks() -> None:
    assert plain_text("\x1b(c@#ff0000)\x1b(T@default)Steel \x1bFPick\x1bE\x1bE!") == "Steel Pick!"


# -- a hostile peer


class Peer:
    """The other end of a bot's socket, without a server."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.bot = Bot("127.0.0.1", self.socket.getsockname()[1], "alice")
        self.bot.begin()
        self.address = self.socket.recvfrom(65535)[1]
        self.number = protocol.FIRST_SEQUENCE

    def raw(self, datagram: bytes) -> None:
        self.socket.sendto(datagram, self.address)

    def packet(self, packet: bytes, channel: int = 0) -> None:
        self.raw(struct.pack(">IHB", protocol.PROTOCOL_ID, 1, channel) + packet)

    def reliable(self, packet: bytes) -> None:
        self.packet(struct.pack(">BH", protocol.RELIABLE, self.number) + packet)
        self.number = (self.number + 1) & 0xFFFF

    def command(self, command: int, body: bytes) -> None:
        self.packet(bytes([protocol.ORIGINAL]) + protocol.u16(command) + body)

    def close(self) -> None:
        self.bot.close()
        self.socket.close()


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(datagrams=st.lists(st.tuples(st.integers(0, 2), st.binary(max_size=60)), max_size=15))
def test_random_datagrams_do_not_end_the_bot(peer: Peer, datagrams: list[tuple[int, bytes]]) -> None:
    for channel, data in datagrams:
        peer.raw(data)
        peer.packet(data, channel)
        peer.command(channel * 32 + len(data), data)
    peer.bot.pump()
    peer.bot.tick(0.09)


def test_a_login_that_makes_no_sense(peer: Peer) -> None:
    peer.command(0x60, protocol.str16(b"salt") + protocol.str16(b"\0"))  # a challenge before the greeting
    peer.command(0x03, bytes(32))  # accepted before the greeting
    peer.bot.pump()
    assert peer.bot.state == "connecting"
    peer.command(0x02, b"\x1c\0\0" + protocol.u16(41) + protocol.u32(2) + protocol.str16("alice"))
    peer.bot.pump()
    assert peer.bot.state == "hello"
    peer.command(0x60, protocol.str16(b"salt") + protocol.str16(bytes(256)))
    peer.command(0x03, b"")
    peer.bot.pump()
    assert peer.bot.state == "hello"
    assert [entry.data["command"] for entry in peer.bot.log if entry.kind == "parse_error"] == [0x60, 0x03]


def test_a_refused_login_says_why(peer: Peer) -> None:
    peer.command(0x0A, b"\x06" + protocol.str16(""))
    peer.bot.pump()
    assert (peer.bot.state, peer.bot.denied) == ("denied", "too many users")


def test_a_login_without_a_known_mechanism_is_refused(peer: Peer) -> None:
    peer.command(0x02, b"\x1c\0\0" + protocol.u16(41) + protocol.u32(1) + protocol.str16("alice"))
    peer.bot.pump()
    assert peer.bot.denied is not None
    assert "0x1" in peer.bot.denied


def test_a_disconnected_bot_stays_silent(peer: Peer) -> None:
    peer.packet(bytes([protocol.CONTROL, protocol.DISCONNECT]))
    peer.bot.pump()
    sent = peer.bot.traffic[1]
    peer.bot.say("hello")
    peer.bot.pump()
    assert (peer.bot.state, peer.bot.traffic[1]) == ("denied", sent)


def test_a_flood_does_not_hold_the_caller(peer: Peer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orrery_worldedit.games.luanti.bot.MAX_DATAGRAMS", 50)
    for _ in range(120):
        peer.command(0x33, protocol.u16(5))
    assert [peer.bot.pump() for _ in range(3)] == [50, 50, 20]


def test_everything_sent_is_acknowledged_before_the_bot_is_idle(peer: Peer) -> None:
    peer.reliable(bytes([protocol.CONTROL, protocol.SET_PEER_ID]) + protocol.u16(9))
    peer.bot.pump()
    assert not peer.bot.idle
    peer.packet(bytes([protocol.CONTROL, protocol.ACK]) + protocol.u16(protocol.FIRST_SEQUENCE))
    peer.packet(
        bytes([protocol.CONTROL, protocol.ACK]) + protocol.u16(protocol.FIRST_SEQUENCE + 1)
    )  # the ping
    peer.bot.pump()
    assert peer.bot.idle


# -- a real server


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    workdir: Path = tmp_path_factory.mktemp("luanti") / "world"
    with World(find_install(), Isolation.detect(), mod=None, mod_name=None, workdir=workdir) as world:
        yield world


@pytest.fixture
def alice(world: World) -> Iterator[Bot]:
    """A healthy player on the flat ground at the origin, nothing in her hands."""
    bot = world.players.get("alice") or world.join("alice")
    world.ask(
        """
        local p = player("alice")
        I.ObjectRef.set_hp(p, 20)
        I.ObjectRef.set_physics_override(p, {speed = 1, jump = 1, gravity = 1, sneak = true})
        I.ObjectRef.set_pos(p, {x = 0, y = 8.5, z = 0})
        local inv = I.ObjectRef.get_inventory(p)
        for _, list in ipairs({"main", "craft"}) do I.InvRef.set_list(inv, list, {}) end
        for x = -6, 6 do for z = -6, 6 do for y = 9, 13 do
            C.set_node({x = x, y = y, z = z}, {name = "air"})
        end end end
        """
    )
    bot.controls.clear()
    bot.look(0)
    bot.select(0)
    world.act()
    world.move(0.5)
    before = len(world.events)
    errors = [entry for entry in bot.log if entry.kind == "parse_error"]
    yield bot
    assert [entry for entry in bot.log if entry.kind == "parse_error"] == errors == []
    assert not [event for event in world.events[before:] if event.kind == "cheat"]


def _give(world: World, *stacks: str) -> None:
    world.ask(
        'local inv = I.ObjectRef.get_inventory(player("alice"))'
        ' for i, s in ipairs(arg) do I.InvRef.set_stack(inv, "main", i, s) end',
        list(stacks),
    )
    world.act()


def _set(world: World, name: str, *positions: tuple[int, int, int], param2: int = 0) -> None:
    places = [{"x": x, "y": y, "z": z} for x, y, z in positions]
    world.ask(
        "for _, p in ipairs(arg.places) do C.set_node(p, {name = arg.name, param2 = arg.param2}) end",
        {"places": places, "name": name, "param2": param2},
    )
    world.act()


@pytest.mark.e2e
def test_the_definitions_of_the_real_game(world: World, alice: Bot) -> None:
    pick = alice.items["default:pick_steel"]
    assert pick.tool_capabilities is not None
    assert pick.tool_capabilities.groupcaps["cracky"] == GroupCap(20, 2, {1: 4.0, 2: 1.6, 3: 0.8})
    assert (pick.type, pick.stack_max, plain_text(pick.description)) == ("tool", 1, "Steel Pickaxe")
    assert alice.items["default:apple"].usable
    torch = alice.nodes["default:torch_wall"]
    assert (torch.paramtype2, torch.light_source, torch.selection_box.type) == (
        "wallmounted",
        12,
        "wallmounted",
    )
    stair = alice.nodes["stairs:stair_wood"]
    assert (stair.paramtype2, stair.drawtype, len(stair.node_box.fixed)) == ("facedir", "nodebox", 2)
    water, lava = alice.nodes["default:water_source"], alice.nodes["default:lava_source"]
    assert (water.liquid_type, water.liquid_viscosity, water.drowning) == ("source", 1, 1)
    assert (lava.damage_per_second, lava.light_source) == (8, 13)
    assert alice.nodes["default:ladder_wood"].climbable
    assert alice.nodes["walls:cobble"].node_box.connected["left"]
    assert alice.nodes["default:dirt_with_grass"].textures[0] == "default_grass.png"
    assert len(alice.items) == world.ask(
        "local n = 0 for _ in pairs(C.registered_items) do n = n + 1 end return n"
    )


@pytest.mark.e2e
def test_movement_constants_and_own_object(alice: Bot) -> None:
    assert alice.movement.speed_walk == pytest.approx(4)
    assert alice.movement.gravity == pytest.approx(9.81)
    assert alice.me is not None
    assert alice.me.textures == ["character.png"]
    assert alice.body.box == pytest.approx((-0.3, 0.0, -0.3, 0.3, 1.7, 0.3))
    assert {"interact", "shout"} <= alice.privs


@pytest.mark.e2e
def test_digging_with_wear_and_drop(world: World, alice: Bot) -> None:
    _give(world, "default:pick_steel")
    _set(world, "default:stone_with_coal", (0, 9, 2))
    assert alice.node((0, 9, 2)) == "default:stone_with_coal"
    taken = alice.dig_time("default:stone_with_coal")
    assert taken is not None
    alice.look_at((0, 9, 2))
    alice.dig_start((0, 9, 2), (0, 9, 1))
    world.act(taken.seconds)
    alice.dig_finish((0, 9, 2), (0, 9, 1))
    world.act()
    assert alice.node((0, 9, 2)) == "air"
    assert alice.inventory["main"][:2] == [f"default:pick_steel 1 {65536 // taken.uses}", "default:coal_lump"]


@pytest.mark.e2e
def test_placing_crafting_and_moving_stacks(world: World, alice: Bot) -> None:
    _give(world, "default:tree 2")
    alice.look_at((0, 8.5, 2))
    alice.place((0, 8, 2), (0, 9, 2))
    world.act()
    assert alice.node((0, 9, 2)) == "default:tree"
    alice.move_stack("main", 0, "craft", 0, 1)
    world.act()
    assert alice.inventory["craftpreview"] == ["default:wood 4"]
    alice.craft()
    world.act()
    alice.move_stack("craftresult", 0, "main", 5)
    world.act()
    assert alice.inventory["main"][5] == "default:wood 4"
    alice.drop("main", 5, 3)
    world.act()
    assert alice.inventory["main"][5] == "default:wood"
    assert [obj.wield_item for obj in alice.find_objects(visual="wielditem")] == ["default:wood 3"]
    world.ask("for _, o in pairs(C.luaentities) do I.ObjectRef.remove(o.object) end")


@pytest.mark.e2e
def test_walking_satisfies_the_server(world: World, alice: Bot) -> None:
    for factor in (1.0, 1.5):
        world.ask('I.ObjectRef.set_physics_override(player("alice"), {speed = arg})', factor)
        world.act()
        start = alice.pos[2]
        alice.controls = {"forward"}
        world.move(11 * world.step_s)
        alice.controls = set()
        world.move(0.5)
        assert alice.pos[2] - start == pytest.approx(4 * factor * 11 * world.step_s, abs=0.02)
    there = world.ask('return I.ObjectRef.get_pos(player("alice"))')
    assert (there["x"], there["y"], there["z"]) == pytest.approx(alice.pos, abs=0.002)


@pytest.mark.e2e
@pytest.mark.parametrize(("gravity", "hp"), [(1.0, 9), (0.2, 20)])
def test_falling_hurts_as_a_real_client_measured_it(
    world: World, alice: Bot, gravity: float, hp: int
) -> None:
    world.ask('I.ObjectRef.set_physics_override(player("alice"), {gravity = arg})', gravity)
    world.ask('I.ObjectRef.set_pos(player("alice"), {x = 0, y = 8.5 + 16.5, z = 0})')
    world.act()
    world.move(4)
    world.act()
    assert alice.pos[1] == pytest.approx(8.5)
    assert alice.hp == hp


@pytest.mark.e2e
def test_jumping_and_climbing_stairs_satisfies_the_server(world: World, alice: Bot) -> None:
    _set(world, "default:stone", *((x, 9, z) for x in (-1, 0, 1) for z in (4, 5, 6)))
    _set(world, "stairs:slab_stone", *((x, 9, 3) for x in (-1, 0, 1)))
    alice.controls = {"forward"}
    world.move(1.35)
    assert alice.pos[1] == pytest.approx(9.5)
    alice.controls = {"jump"}
    world.move(2)
    alice.controls = set()
    world.move(1)
    assert alice.pos[1] == pytest.approx(9.5)


@pytest.mark.e2e
def test_forms_and_metadata_of_nodes(world: World, alice: Bot) -> None:
    _set(world, "default:chest", (2, 9, 2))
    _set(world, "default:sign_wall_wood", (-2, 9, 2), param2=1)
    alice.look_at((2, 9, 2))
    alice.place((2, 9, 2), (2, 9, 1))
    world.act(0.5)
    name, text = alice.formspecs[-1]
    lists = [widget.inventory for widget in find_widgets(parse_formspec(text), type="list")]
    assert name == "default:chest"
    assert ("nodemeta:2,9,2", "main", 0) in lists
    alice.fields(name, {"quit": "true"})
    _give(world, "default:dirt 5")
    alice.move_stack("main", 0, "main", 3, 2, to_inv="nodemeta:2,9,2")
    world.act()
    assert alice.meta[(2, 9, 2)].inventory["main"][3] == "default:dirt 2"
    alice.node_fields((-2, 9, 2), {"text": "hello world", "quit": "true"})
    world.act()
    assert "hello world" in alice.meta[(-2, 9, 2)].infotext


@pytest.mark.e2e
def test_what_a_mod_shows_a_player(world: World, alice: Bot) -> None:
    world.ask(
        """
        local p = player("alice")
        local here = {x = 0, y = 9, z = 1}
        shown = I.ObjectRef.hud_add(p, {hud_elem_type = "text", text = "Mana: 10",
            position = {x = 0.5, y = 0.25}, number = 0xff, z_index = -3, offset = {x = 1, y = 2}})
        C.sound_play("default_dig_stone", {pos = {x = 1, y = 9, z = 1}, gain = 0.5})
        C.add_particle({pos = here, velocity = {x = 0, y = 1, z = 0}, expirationtime = 1, size = 2,
            texture = "heart.png"})
        C.add_particlespawner({amount = 5, time = 0, minpos = here, maxpos = here, texture = "bubble.png"})
        C.show_formspec("alice", "shop:buy", "size[3,3]button_exit[0,0;2,1;ok;Buy]")
        I.ObjectRef.set_armor_groups(p, {fleshy = 50})
        I.ObjectRef.add_velocity(p, {x = 0, y = 2, z = 0})
        C.chat_send_player("alice", "well met")
        """
    )
    world.act()
    hud = next(hud for hud in alice.hud.values() if hud.text == "Mana: 10")
    assert (hud.type, hud.pos, hud.number, hud.z_index, hud.offset) == ("text", (0.5, 0.25), 0xFF, -3, (1, 2))
    sound = alice.sounds[-1]
    assert (sound.name, sound.gain, sound.location, sound.pos) == (
        "default_dig_stone",
        0.5,
        "position",
        (1, 9, 1),
    )
    assert (alice.particles[-1].texture, alice.particles[-1].pos) == ("heart.png", (0, 9, 1))
    assert [spawner.texture for spawner in alice.spawners.values()] == ["bubble.png"]
    assert alice.formspecs[-1][0] == "shop:buy"
    assert alice.chat[-1] == "well met"
    assert alice.me is not None
    assert alice.me.armor_groups == {"fleshy": 50}
    assert alice.body.velocity[1] > 0
    world.ask(
        """
        I.ObjectRef.hud_change(player("alice"), shown, "text", "Mana: 5")
        I.ObjectRef.hud_change(player("alice"), shown, "z_index", -7)
        I.ObjectRef.set_armor_groups(player("alice"), {fleshy = 100})
        """
    )
    world.act()
    assert (hud.text, hud.z_index) == ("Mana: 5", -7)
    world.ask('I.ObjectRef.hud_remove(player("alice"), shown)')
    world.act()
    assert hud.id not in alice.hud


@pytest.mark.e2e
def test_another_player_and_a_fight(world: World, alice: Bot) -> None:
    bob = world.join("bob")
    world.ask('I.ObjectRef.set_pos(player("bob"), {x = 0, y = 8.5, z = 2})')
    _give(world, "default:sword_steel")
    world.move(1.5)
    (target,) = alice.find_objects("bob")
    alice.look_at((0, 9.5, 2))
    alice.punch(target.id)
    world.act()
    assert (bob.hp, target.hp) == (14, 14)
    assert any(entry.kind == "player_speed" for entry in bob.log)
    bob.say("/me greets")
    world.act()
    assert alice.chat[-1] == "* bob greets"
    world.leave("bob")
    assert alice.find_objects("bob") == []


@pytest.mark.e2e
def test_death_and_respawn(world: World, alice: Bot) -> None:
    alice.damage(50)
    world.act()
    assert alice.dead
    alice.respawn()
    world.act()
    assert (alice.hp, alice.dead) == (20, False)


@pytest.mark.e2e
def test_media_arrives_as_announced(world: World, alice: Bot) -> None:
    wanted = [name for name in alice.media_index if name.endswith(".png")]
    alice.request_media(wanted)
    world.act()
    assert set(alice.media) == set(wanted)
    digests = {name: hashlib.sha1(data).hexdigest() for name, data in alice.media.items()}
    assert digests == {name: alice.media_index[name] for name in wanted}


@pytest.mark.e2e
def test_every_message_of_the_server_has_a_handler(alice: Bot) -> None:
    animations, client_mods = 0x51, 0x2A  # of no use to a player without a screen
    assert set(alice.counts) - set(messages._HANDLERS) - {0x02, 0x03, 0x60} <= {animations, client_mods}


@pytest.mark.e2e
def test_a_password_protects_an_account(tmp_path: Path) -> None:
    with World(
        find_install(),
        Isolation.detect(),
        mod=None,
        mod_name=None,
        workdir=tmp_path / "w",
        mapgen="singlenode",
    ) as world:
        states = []
        for password in ("first", "first", "second"):
            bot = Bot("127.0.0.1", world._server.port, "carol", password)
            bot.begin()
            for _ in range(50):
                world._steps(1)
                bot.pump()
                if bot.state in ("joined", "denied"):
                    break
                world.settle()
            states.append((bot.state, bot.denied))
            bot.close()
            world.run(0.5)
        assert states == [("joined", None), ("joined", None), ("denied", "wrong password")]
