"""Side-by-side timings, which are not part of the tests."""
