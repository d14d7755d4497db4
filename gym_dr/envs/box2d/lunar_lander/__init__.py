"""LunarLander with randomized physics."""
