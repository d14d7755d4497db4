"""Environments as a user would write them."""
