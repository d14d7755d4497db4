"""Randomized environments, one folder for each family."""
