"""Machine code that several parts of the package share: its store on disk, and small networks."""
