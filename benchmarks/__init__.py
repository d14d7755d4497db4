"""Side-by-side timings; none is part of the tests."""
