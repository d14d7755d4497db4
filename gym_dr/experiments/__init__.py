"""The Python interface: train, evaluate, report and study, and trained runs as objects. The command line calls it."""
