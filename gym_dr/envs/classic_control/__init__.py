"""Gymnasium's classic control environments."""
