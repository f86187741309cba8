"""Game adapters; each declares the verbs and capabilities it can measure."""
