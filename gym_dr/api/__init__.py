"""The Python interface: verbs that join what the rooms below can do, and the runs that they return."""
