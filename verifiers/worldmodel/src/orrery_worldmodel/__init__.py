"""World models: exact simulators, hidden splits, scoring, and a judge that never runs what it judges in its own process."""
