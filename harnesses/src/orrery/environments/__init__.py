"""Harbor environments of Orrery: `sandbox` (embedded, bubblewrap) and `engine` (Docker or Podman socket)."""
