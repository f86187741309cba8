"""Orrery: Harbor tasks about executable worlds, with a runner and one result model."""

import os

# Before anything imports Harbor: its telemetry imports LiteLLM (seconds), which wants a price list online.
os.environ.setdefault("HARBOR_TELEMETRY", "0")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
