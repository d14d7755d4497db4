"""The Python interface: train, evaluate and report, and the runs that they leave behind. The command line calls it."""
