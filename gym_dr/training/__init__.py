"""Algorithms, and what they share."""
