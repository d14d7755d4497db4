"""Robots as a user would write them."""
