"""Run folders: everything that a run wrote."""
