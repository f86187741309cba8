"""Forms and node inventories: opening, reading, filling in, moving items through them."""

from __future__ import annotations

from typing import Any

from orrery_worldedit.engine import StepStopped
from orrery_worldedit.games.luanti.bot import Bot
from orrery_worldedit.games.luanti.formspec import Widget, parse_formspec
from orrery_worldedit.games.luanti.verbs.base import VerbsBase, stack_count, stack_name
from orrery_worldedit.games.luanti.verbs.people import plain
from orrery_worldedit.verbs import Kind, Position, verb

BUTTONS = frozenset(
    {"button", "button_exit", "image_button", "image_button_exit", "item_image_button", "button_url"}
)
FIELDS = frozenset({"field", "textarea", "pwdfield", "checkbox", "dropdown"})


_CONTENTS = """
local wanted
if arg.lists then
	wanted = {}
	for _, name in ipairs(arg.lists) do wanted[name] = true end
end
local found = {}
for list, stacks in next, I.InvRef.get_lists(I.NodeMetaRef.get_inventory(C.get_meta(arg.at))) do
	if not wanted or wanted[list] then
		for _, stack in ipairs(stacks) do
			local name = I.ItemStack.get_name(stack)
			if name ~= "" then found[name] = (found[name] or 0) + I.ItemStack.get_count(stack) end
		end
	end
end
return found
"""

_SLOT = """
local inv = I.NodeMetaRef.get_inventory(C.get_meta(arg.at))
local size = I.InvRef.get_size(inv, arg.list)
for i = 1, size do
	local name = I.ItemStack.get_name(I.InvRef.get_stack(inv, arg.list, i))
	if name == "" or name == arg.item then return i - 1 end
end
return size > 0 and size or -1
"""


class Forms(VerbsBase):
    """Verbs about windows that a game shows to a player."""

    _open: dict[str, tuple[str, str, Position | None]]
    """Player -> (form name, text, node place) of the form shown last."""

    @verb(Kind.ACT)
    def open(self, player: str, at: Position) -> dict[str, Any]:
        """Right-click a node and read the form it shows.

        `shown`, `text` (all labels), `buttons`, `fields`, `lists`.
        """
        bot, where = self.bot(player), self.node_position(at)
        mark = len(bot.formspecs)
        bot.place(where, (where[0], where[1] + 1, where[2]))
        self.world.act(0.3)
        if len(bot.formspecs) > mark:
            name, text = bot.formspecs[-1]
            self._open[player] = (name, text, None)
        else:
            text = str(
                self.ask("return I.NodeMetaRef.get_string(C.get_meta(arg), 'formspec')", self.position(at))
            )
            self._open[player] = ("", text, at)
        return _described(parse_formspec(text)) if text else _described([])

    @verb(Kind.ACT)
    def submit(
        self, player: str, press: str, fields: dict[str, str] | None = None, force: bool = False
    ) -> dict[str, Any]:
        """Fill fields (found by label) of the form shown last and press a button (found by label); answers
        the form then shown.

        With ``force`` a label that is not there is sent as a raw field name, as a modified client would.
        """
        bot = self.bot(player)
        if player not in self._open:
            raise StepStopped(f"no form is open for {player}")
        form, text, at = self._open[player]
        widgets = parse_formspec(text)
        sent = {widget.name: widget.value for widget in widgets if widget.type in FIELDS and widget.name}
        for label, value in (fields or {}).items():
            sent[_find(widgets, FIELDS, label, force)] = value
        sent[_find(widgets, BUTTONS, press, force)] = press
        mark = len(bot.formspecs)
        self._send(bot, form, at, sent)
        self.world.act(0.3)
        if len(bot.formspecs) > mark:
            name, text = bot.formspecs[-1]
            self._open[player] = (name, text, None)
        return _described(parse_formspec(text))

    @verb(Kind.ACT)
    def forge(self, player: str, like: str, at: Position, press: str, fields: dict[str, str]) -> None:
        """Send the fields and the button of a form that was shown to another player, as a modified client
        would.
        """
        if like not in self._open:
            raise StepStopped(f"no form is open for {like}")
        form, text, _ = self._open[like]
        widgets = parse_formspec(text)
        sent = {_find(widgets, FIELDS, label, False): value for label, value in fields.items()}
        sent[_find(widgets, BUTTONS, press, False)] = press
        bot = self.bot(player)
        if form:
            bot.fields(form, sent)
        bot.node_fields(self.node_position(at), sent)
        self.world.act(0.3)

    @verb(Kind.ACT)
    def close_form(self, player: str) -> None:
        """Close the form shown last."""
        if player in self._open:
            form, _, at = self._open.pop(player)
            self._send(self.bot(player), form, at, {"quit": "true"})
            self.world.act()

    @verb(Kind.ACT)
    def put(self, player: str, at: Position, into: str, item: str, count: int) -> int:
        """Move items from the player into a node's inventory list; answers how many left his hands."""
        bot = self.bot(player)
        self.world.act()
        before = _count(bot, item)
        source = next((i for i, s in enumerate(bot.inventory.get("main", [])) if stack_name(s) == item), None)
        if source is None:
            raise StepStopped(f"{player} has no {item}")
        slot = self._slot(at, into, item)
        bot.move_stack("main", source, into, slot, count, to_inv=self._place(at))
        self.world.act(0.2)
        return before - _count(bot, item)

    @verb(Kind.ACT)
    def take(self, player: str, at: Position, out_of: str, slot: int = 1, count: int = 99) -> int:
        """Move items from a slot (from 1) of a node's inventory list to the player.

        Answers how many arrived.
        """
        bot = self.bot(player)
        self.world.act()
        before = sum(stack_count(stack) for stack in bot.inventory.get("main", []))
        free = next((i for i, s in enumerate(bot.inventory.get("main", [])) if not stack_name(s)), None)
        if free is None:
            raise StepStopped(f"{player}'s inventory is full")
        bot.move_stack(out_of, slot - 1, "main", free, count, from_inv=self._place(at))
        self.world.act(0.2)
        return sum(stack_count(stack) for stack in bot.inventory.get("main", [])) - before

    @verb(Kind.MEASURE)
    def contents(self, at: Position, lists: list[str] | None = None) -> dict[str, int]:
        """Item name -> count over a node's inventory lists (all of them by default)."""
        found = self.ask(
            _CONTENTS,
            {"at": self.position(at), "lists": lists},
        )
        return dict(found or {})

    def _place(self, at: Position) -> str:
        return "nodemeta:{},{},{}".format(*self.node_position(at))

    def _slot(self, at: Position, into: str, item: str) -> int:
        found = self.ask(
            _SLOT,
            {"at": self.position(at), "list": into, "item": item},
        )
        if int(found) < 0:
            raise StepStopped(f'the node at {at} has no inventory list "{into}"')
        return int(found)

    def _send(self, bot: Bot, form: str, at: Position | None, fields: dict[str, str]) -> None:
        if at is None:
            bot.fields(form, fields)
        else:
            bot.node_fields(self.node_position(at), fields)


def _described(widgets: list[Widget]) -> dict[str, Any]:
    return {
        "shown": bool(widgets),
        "text": " | ".join(plain(w.label) for w in widgets if w.label),
        "buttons": [plain(w.label) for w in widgets if w.type in BUTTONS],
        "fields": {plain(w.label) or w.name: w.value for w in widgets if w.type in FIELDS},
        "lists": sorted({w.inventory[1] for w in widgets if w.inventory}),
    }


def _find(widgets: list[Widget], kinds: frozenset[str], label: str, force: bool) -> str:
    wanted = label.lower()
    labelled = [w for w in widgets if w.type in kinds and plain(w.label).lower().rstrip(": ") == wanted]
    found = labelled or [w for w in widgets if w.type in kinds and wanted in plain(w.label).lower()]
    if len(found) == 1:
        return found[0].name
    if force and not found:
        return label
    shown = ", ".join(repr(plain(w.label)) for w in widgets if w.type in kinds) or "none"
    raise StepStopped(
        f'{"no" if not found else "more than one"} widget is labelled "{label}"; shown: {shown}'
    )


def _count(bot: Bot, item: str) -> int:
    return sum(stack_count(s) for s in bot.inventory.get("main", []) if stack_name(s) == item)
