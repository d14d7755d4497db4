"""Environments whose physics is a few formulas: machine code compiled from plain functions, one file each."""
