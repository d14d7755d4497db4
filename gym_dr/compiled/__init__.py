"""Machine code that several parts of the package share: its cache on disk, networks, random numbers, noise, threads."""
