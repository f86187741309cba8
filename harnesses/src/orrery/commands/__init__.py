"""One module per subcommand of `orrery`; each defines `command`."""
