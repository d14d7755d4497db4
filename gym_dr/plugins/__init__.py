"""Algorithms, environments, samplers and presets from other packages."""
