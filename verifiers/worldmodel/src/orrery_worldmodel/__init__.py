"""World models: exact simulators, hidden splits, scoring, and a judge apart from what it judges."""
