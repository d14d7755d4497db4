"""Gymnasium's MuJoCo environments with randomized models."""
