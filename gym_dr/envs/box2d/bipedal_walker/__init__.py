"""BipedalWalker with randomized physics and terrain."""
