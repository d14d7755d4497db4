"""Frozen policies on chosen draws."""
