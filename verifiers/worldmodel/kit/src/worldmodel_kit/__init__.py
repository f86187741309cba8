"""The kit of the world-model tasks: schema, data, base models, training and evaluation."""
