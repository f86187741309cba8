"""Orrery: Harbor tasks about executable worlds, with a runner and one result model."""
