"""Luanti's verbs, one small module per domain: terrain, items, people, combat, forms."""
