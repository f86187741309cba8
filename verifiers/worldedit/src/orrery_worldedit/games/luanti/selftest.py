"""Proof on this machine that game time is under control; run by `orrery doctor` and by the tests."""

from __future__ import annotations

from pathlib import Path

from orrery_core.errors import InfrastructureError
from orrery_core.isolation import Isolation

from .install import Install
from .world import STEP_S, World

LOOKS = 200  # how often the paused server looks for packets while it must stand still
STEPS = 100


def gate_self_test(install: Install, isolation: Isolation, workdir: Path) -> dict[str, float]:
    """Prove that a paused server stands still and that every step has exactly its length.

    Args:
        workdir: does not exist yet; the caller removes it.

    Returns:
        steps taken, and the shortest and longest of them in seconds.

    Raises:
        InfrastructureError: the gate does not hold.
    """
    with World(install, isolation, mod=None, mod_name=None, workdir=workdir, mapgen="singlenode") as world:
        before = world.step
        for _ in range(LOOKS // 2):
            world.settle()
        if world.step != before:
            raise InfrastructureError(f"the step gate leaks: {world.step - before} steps while paused")
        world.run(STEPS * world.step_s)
        clock = world.ask("return {clock.steps, clock.shortest, clock.longest}")
        steps, shortest, longest = (float(value) for value in clock)
        taken = world.step - before
        if taken != STEPS + 1 or max(abs(shortest - STEP_S), abs(longest - STEP_S)) > 1e-6:
            raise InfrastructureError(
                f"the step gate is off: {taken} of {STEPS + 1} steps, {shortest} to {longest} s each"
            )
    return {"steps": steps, "shortest_s": shortest, "longest_s": longest}
