"""Robots that people own: each a task and an MJCF, as a user would write them. Importing a module registers its id."""
