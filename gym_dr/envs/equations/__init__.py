"""Environments whose physics are a few formulas: machine code made of plain functions, one file an environment."""
