"""Policies of any origin, opened: the environment that each acts in, and how it acts."""
