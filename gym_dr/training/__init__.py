"""Algorithms and the parts they share."""
