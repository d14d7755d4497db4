"""Algorithms, environments and presets from other packages."""
