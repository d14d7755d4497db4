"""When to re-draw, and what is recorded."""
