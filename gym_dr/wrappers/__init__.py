"""Wrappers: when to draw, who sees the draw, disturbances, frame stacks and records."""
