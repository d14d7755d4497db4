"""BipedalWalker without Box2D, bit for bit the same: many environments in one process, on the shared solver."""
