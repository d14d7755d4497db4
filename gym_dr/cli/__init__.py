"""The gymdr command: one file for each subcommand."""
