"""Runs: their folders, configurations, logs and checkpoints."""
