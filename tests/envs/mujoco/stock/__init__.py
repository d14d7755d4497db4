"""Robots of others for the tests: their wheels are unpacked into a cache, and nothing of them is kept here."""
