"""LunarLander without Box2D, bit for bit the same: many environments in one process. solver/README.md explains it."""
