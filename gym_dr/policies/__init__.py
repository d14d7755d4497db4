"""Policies of any origin: opens them, with the environment in which each acts, and plays them."""
