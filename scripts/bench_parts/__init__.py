"""Benchmarks behind `scripts/bench`: one module per claim."""
