"""`orrery show`: one task, or the verbs of a family."""

from __future__ import annotations

from click.testing import CliRunner
from orrery.commands.show import command


def test_a_task_is_shown_with_its_requirements_checks_and_mutants() -> None:
    shown = CliRunner().invoke(command, ["tasks/luanti/l1_steel_pick"]).output
    assert "Every digging time of the steel pickaxe is half" in shown
    assert "stone_dug_in_half_the_time  (requirement 1)" in shown
    assert "lua_table_only  caught by client_times_halved" in shown


def test_every_verb_is_listed_with_its_arguments() -> None:
    shown = CliRunner().invoke(command, ["--verbs", "luanti"]).output
    assert "dig(player, at, [timeout])" in shown
    assert shown.index("fixture verbs") < shown.index("act verbs") < shown.index("measure verbs")
