"""A vector environment that survives worker processes which die, hang or return invalid data."""
