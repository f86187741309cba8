"""Server messages, one handler per command, each of which updates a `View`.

A message that does not parse ends there: it becomes a `parse_error` entry of the log with its command number.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
from collections.abc import Callable
from typing import Any

from . import observations as seen
from .definitions import AIR, parse_items, parse_nodes
from .observations import Obj
from .physics import Movement, Overrides
from .protocol import Reader, inflate
from .view import MAX_BLOCKS, MAX_MEDIA_BYTES, View

Handler = Callable[[View, Reader], None]
_HANDLERS: dict[int, Handler] = {}


def handle(view: View, body: bytes) -> None:
    """Take in one command; unknown ones are only counted."""
    view.message_bytes = len(body)
    if len(body) < 2:
        view.record("parse_error", command=None, error=f"a command of {len(body)} bytes")
        return
    command = body[0] << 8 | body[1]
    view.counts[command] = view.counts.get(command, 0) + 1
    handler = _HANDLERS.get(command)
    if handler is None:
        return
    try:
        handler(view, Reader(body, 2))
    except Exception as error:  # hostile input must never end the judge
        view.record("parse_error", command=command, error=f"{type(error).__name__}: {error}")


def handles(command: int) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        _HANDLERS[command] = handler
        return handler

    return register


# -- definitions and media


@handles(0x3D)
def _item_definitions(view: View, reader: Reader) -> None:
    items = parse_items(inflate(reader.bytes32())[0])
    view.items, view.aliases = items.by_name, items.aliases


@handles(0x3A)
def _node_definitions(view: View, reader: Reader) -> None:
    nodes = parse_nodes(inflate(reader.bytes32())[0])
    view.nodes, view.node_ids = nodes.by_name, nodes.by_id
    view.map_version += 1


@handles(0x3C)
def _announce_media(view: View, reader: Reader) -> None:
    for _ in range(reader.u16()):
        name, digest = reader.str16(), reader.str16()
        view.media_index[name] = base64.b64decode(digest + "=" * (-len(digest) % 4)).hex()  # comes unpadded


@handles(0x38)
def _media(view: View, reader: Reader) -> None:
    reader.u16(), reader.u16()  # bunches, this bunch
    for _ in range(reader.u32()):
        name, data = reader.str16(), reader.bytes32()
        if view.media_bytes + len(data) > MAX_MEDIA_BYTES:
            view.record("table_full", limit=MAX_MEDIA_BYTES)
            return
        view.media_bytes += len(data)
        view.media[name] = data
        if hashlib.sha1(data, usedforsecurity=False).hexdigest() != view.media_index.get(name):
            view.record("media_mismatch", name=name)
        view.received_media(name)


@handles(0x2C)
def _media_push(view: View, reader: Reader) -> None:
    digest, name = reader.bytes16(), reader.str16()
    reader.flag()  # cached
    if view.bounded(view.media_index, name, digest.hex()):
        view.record("media_push", name=name)
        view.announced_media(name, reader.u32())


# -- map


@handles(0x20)
def _block(view: View, reader: Reader) -> None:
    block = seen.parse_block(reader)
    if block.pos not in view.blocks and len(view.blocks) >= MAX_BLOCKS:
        view.blocks.pop(next(iter(view.blocks)))  # the one received longest ago
    view.blocks[block.pos] = block.nodes
    for pos in [pos for pos in view.meta if tuple(c >> 4 for c in pos) == block.pos]:
        del view.meta[pos]
    for pos, meta in block.meta.items():
        view.bounded(view.meta, pos, meta)
    view.map_version += 1
    view.received_block(block.pos)


@handles(0x21)
def _add_node(view: View, reader: Reader) -> None:
    pos, content, param1, param2 = reader.v3s16(), reader.u16(), reader.u8(), reader.u8()
    if not (reader.left and reader.flag()):  # the last byte says that metadata stays
        view.meta.pop(pos, None)
    view.set_node(pos, content, param1, param2)
    view.record("node", pos=pos, node=view.name_of(content), param2=param2)


@handles(0x22)
def _remove_node(view: View, reader: Reader) -> None:
    pos = reader.v3s16()
    view.meta.pop(pos, None)
    view.set_node(pos, AIR, 0, 0)
    view.record("node", pos=pos, node="air", param2=0)


@handles(0x59)
def _meta_changed(view: View, reader: Reader) -> None:
    for pos, meta in seen.parse_meta(inflate(reader.bytes32(), seen.MAX_META)[0]).items():
        if meta.fields or meta.inventory:
            view.bounded(view.meta, pos, meta)
        else:
            view.meta.pop(pos, None)
        view.record("meta", pos=pos)


# -- inventories and forms


@handles(0x27)
def _inventory(view: View, reader: Reader) -> None:
    view.inventory = seen.parse_inventory(reader.rest().decode("utf-8", "replace"), view.inventory)
    view.record("inventory")


@handles(0x43)
def _detached(view: View, reader: Reader) -> None:
    name, keep = reader.str16(), reader.flag()
    if keep:
        reader.u16()  # once the length of what follows
        text = reader.rest().decode("utf-8", "replace")
        view.bounded(view.detached, name, seen.parse_inventory(text, view.detached.get(name, {})))
    else:
        view.detached.pop(name, None)
    view.record("detached", name=name)


@handles(0x42)
def _inventory_formspec(view: View, reader: Reader) -> None:
    view.inventory_formspec = reader.str32()
    view.record("inventory_formspec")


@handles(0x61)
def _formspec_prepend(view: View, reader: Reader) -> None:
    view.formspec_prepend = reader.str16()


@handles(0x44)
def _formspec(view: View, reader: Reader) -> None:
    text, name = reader.str32(), reader.str16()
    if view.record("formspec", name=name, text=text):
        view.formspecs.append((name, text))


# -- the player itself


@handles(0x33)
def _hp(view: View, reader: Reader) -> None:
    view.hp = reader.u16()
    view.record("hp", hp=view.hp)


@handles(0x4E)
def _breath(view: View, reader: Reader) -> None:
    view.breath = reader.u16()
    view.record("breath", breath=view.breath)


@handles(0x34)
def _move_player(view: View, reader: Reader) -> None:
    view.body.pos, view.pitch, view.yaw = reader.point(), reader.f32(), reader.f32()
    view.record("move", pos=view.body.pos, yaw=view.yaw, pitch=view.pitch)


@handles(0x5D)
def _move_player_by(view: View, reader: Reader) -> None:
    x, y, z = reader.point()
    px, py, pz = view.body.pos
    view.body.pos = (px + x, py + y, pz + z)
    view.record("move", pos=view.body.pos, yaw=view.yaw, pitch=view.pitch)


@handles(0x2B)
def _player_speed(view: View, reader: Reader) -> None:
    added = reader.point()
    vx, vy, vz = view.body.velocity
    view.body.velocity = (vx + added[0], vy + added[1], vz + added[2])
    view.record("player_speed", added=added)


@handles(0x37)
def _death(view: View, _reader: Reader) -> None:
    view.record("death")


@handles(0x41)
def _privileges(view: View, reader: Reader) -> None:
    view.privs = {reader.str16() for _ in range(reader.u16())}
    view.record("privs", privs=sorted(view.privs))


@handles(0x45)
def _movement(view: View, reader: Reader) -> None:
    view.movement = Movement(*(reader.f32() for _ in dataclasses.fields(Movement)))
    view.record("movement", **dataclasses.asdict(view.movement))


@handles(0x36)
def _fov(view: View, reader: Reader) -> None:
    view.fov = (reader.f32(), reader.flag())
    view.record("fov", fov=view.fov[0], multiplier=view.fov[1])


@handles(0x56)
def _player_list(view: View, reader: Reader) -> None:
    kind = reader.u8()
    names = {reader.str16() for _ in range(reader.u16())}
    view.players = view.players - names if kind == 2 else view.players | names


# -- objects


@handles(0x31)
def _objects(view: View, reader: Reader) -> None:
    for _ in range(reader.u16()):
        number = reader.u16()
        if view.objects.pop(number, None):
            view.record("object_removed", id=number)
    for _ in range(reader.u16()):
        number = reader.u16()
        reader.u8()  # type: there is only one
        obj, messages = seen.parse_object(Reader(reader.bytes32()), number)
        if not view.bounded(view.objects, number, obj):
            continue
        if obj.is_player and obj.name == view.name:
            view.object_id = number
        for message in messages:
            _object_message(view, obj, Reader(message))
        view.record("object_added", id=number, name=obj.name, pos=obj.pos)
    view.map_version += 1


@handles(0x32)
def _object_messages(view: View, reader: Reader) -> None:
    while reader.left:
        number, message = reader.u16(), Reader(reader.bytes16())
        if (obj := view.objects.get(number)) is not None:
            _object_message(view, obj, message)


def _object_message(view: View, obj: Obj, reader: Reader) -> None:
    kind = reader.u8()
    if kind == 0:
        seen.read_properties(reader, obj)
        if obj.id == view.object_id:
            view.body.box, view.body.step_height = obj.collisionbox, obj.stepheight
    elif kind == 1:
        seen.read_position(reader, obj)
    elif kind == 2:
        obj.texture_modifier = reader.str16()
        view.record("texture_modifier", id=obj.id, modifier=obj.texture_modifier)
    elif kind == 4:
        obj.hp = reader.u16()
        view.record("punched", id=obj.id, hp=obj.hp)
    elif kind == 5:
        obj.armor_groups = {reader.str16(): reader.s16() for _ in range(reader.u16())}
    elif kind == 6:
        obj.animation = (*reader.v2f(), reader.f32())
    elif kind == 7:
        bone = reader.str16()
        if len(obj.bones) < 1000:
            obj.bones[bone] = (reader.v3f(), reader.v3f())
    elif kind == 8:
        obj.attached_to, obj.attach_bone, obj.attach_pos = reader.u16(), reader.str16(), reader.v3f()
        view.record("attached", id=obj.id, to=obj.attached_to)
    elif kind == 9 and obj.id == view.object_id:
        _physics_override(view, reader)
    if kind in (0, 1) and obj.physical and obj.collide_with_objects:
        view.map_version += 1


def _physics_override(view: View, reader: Reader) -> None:
    speed, jump, gravity = reader.f32(), reader.f32(), reader.f32()
    switches = [not reader.flag() for _ in range(3)]  # sent inverted
    names = [field.name for field in dataclasses.fields(Overrides)][6:]
    factors: dict[str, Any] = {}
    for name in names[: reader.left // 4]:  # later versions send more of them
        factors[name] = reader.f32()
    view.physics = dataclasses.replace(Overrides(speed, jump, gravity, *switches), **factors)
    view.record("physics", speed=speed, jump=jump, gravity=gravity)


# -- HUD and sky


@handles(0x49)
def _hud_add(view: View, reader: Reader) -> None:
    hud = seen.parse_hud(reader)
    if view.bounded(view.hud, hud.id, hud):
        view.record("hud_add", id=hud.id, type=hud.type, text=hud.text, number=hud.number)


@handles(0x4A)
def _hud_remove(view: View, reader: Reader) -> None:
    number = reader.u32()
    view.hud.pop(number, None)
    view.record("hud_remove", id=number)


@handles(0x4B)
def _hud_change(view: View, reader: Reader) -> None:
    number, kind = reader.u32(), reader.u8()
    if kind >= len(seen.HUD_STATS):
        return
    stat = seen.HUD_STATS[kind]
    value = seen.read_hud_stat(reader, stat)
    if number in view.hud:
        setattr(view.hud[number], stat, value)
    view.record("hud_change", id=number, stat=stat, value=value)


@handles(0x4C)
def _hud_flags(view: View, reader: Reader) -> None:
    flags, mask = reader.u32(), reader.u32()
    for bit, name in enumerate(seen.HUD_FLAGS):
        if mask & (1 << bit):
            view.hud_flags[name] = bool(flags & (1 << bit))
    view.record("hud_flags", **view.hud_flags)


@handles(0x4D)
def _hud_param(view: View, reader: Reader) -> None:
    param, value = reader.u16(), reader.bytes16()
    if param == 1 and len(value) == 4:
        view.hud_params["hotbar_itemcount"] = int.from_bytes(value, "big", signed=True)
    elif param in (2, 3):
        name = "hotbar_image" if param == 2 else "hotbar_selected_image"
        view.hud_params[name] = value.decode("utf-8", "replace")


@handles(0x29)
def _time(view: View, reader: Reader) -> None:
    view.time_of_day = reader.u16() % 24000 / 24000
    view.time_speed = reader.f32() if reader.left else 0.0


@handles(0x50)
def _day_night(view: View, reader: Reader) -> None:
    override, ratio = reader.flag(), reader.u16()
    view.day_night_ratio = ratio / 65536 if override else None
    view.record("day_night", ratio=view.day_night_ratio)


@handles(0x4F)
def _sky(view: View, reader: Reader) -> None:
    color, kind, clouds = reader.u32(), reader.str16(), reader.flag()
    reader.u32(), reader.u32(), reader.str16()  # fog tints
    view.sky["sky"] = {"type": kind, "color": color, "clouds": clouds}
    if kind == "skybox":
        view.sky["textures"] = [reader.str16() for _ in range(reader.u16())]
    elif kind == "regular":
        view.sky["colors"] = [reader.u32() for _ in range(7)]
    view.record("sky", type=kind, color=color)


@handles(0x5A)
def _sun(view: View, reader: Reader) -> None:
    view.sky["sun"] = {"visible": reader.flag(), "texture": reader.str16()}
    view.record("sun")


@handles(0x5B)
def _moon(view: View, reader: Reader) -> None:
    view.sky["moon"] = {"visible": reader.flag(), "texture": reader.str16()}
    view.record("moon")


@handles(0x5C)
def _stars(view: View, reader: Reader) -> None:
    view.sky["stars"] = {"visible": reader.flag(), "count": reader.u32()}
    view.record("stars")


@handles(0x54)
def _clouds(view: View, reader: Reader) -> None:
    view.sky["clouds"] = {"density": reader.f32(), "color": reader.u32()}
    view.record("clouds")


@handles(0x63)
def _lighting(view: View, reader: Reader) -> None:
    view.lighting = [reader.f32() for _ in range(reader.left // 4)]
    view.record("lighting", values=view.lighting)


# -- chat, sounds, particles


@handles(0x2F)
def _chat(view: View, reader: Reader) -> None:
    reader.u8(), reader.u8()  # version, type
    sender, text = reader.wide(), reader.wide()
    if view.record("chat", sender=sender, text=text):
        view.chat.append(text)


@handles(0x3F)
def _sound(view: View, reader: Reader) -> None:
    sound = seen.parse_sound(reader)
    if view.record("sound", name=sound.name, gain=sound.gain, pos=sound.pos, id=sound.id):
        view.sounds.append(sound)


@handles(0x40)
def _stop_sound(view: View, reader: Reader) -> None:
    view.record("sound_stop", id=reader.s32())


@handles(0x55)
def _fade_sound(view: View, reader: Reader) -> None:
    view.record("sound_fade", id=reader.s32(), step=reader.f32(), gain=reader.f32())


@handles(0x46)
def _particle(view: View, reader: Reader) -> None:
    particle = seen.parse_particle(reader)
    if view.record("particle", texture=particle.texture, pos=particle.pos):
        view.particles.append(particle)


@handles(0x47)
def _spawner(view: View, reader: Reader) -> None:
    spawner = seen.parse_spawner(reader)
    if view.bounded(view.spawners, spawner.id, spawner):
        view.record("spawner", id=spawner.id, texture=spawner.texture, amount=spawner.amount)


@handles(0x53)
def _spawner_removed(view: View, reader: Reader) -> None:
    number = reader.u32()
    view.spawners.pop(number, None)
    view.record("spawner_removed", id=number)
