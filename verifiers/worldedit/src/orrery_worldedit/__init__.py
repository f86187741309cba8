"""World-editing verifier: check language, engine and game adapters."""
