"""Luanti (Minetest Game): headless server under a step gate, a trusted probe, protocol players."""
