"""Shared machine code: its cache on disk, networks, random numbers, noise and threads."""
