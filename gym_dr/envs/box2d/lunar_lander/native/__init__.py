"""LunarLander without Box2D, bit for bit the same: many environments in one process. README.md explains a step."""
