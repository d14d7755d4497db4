"""Trainers of others on vector environments: one file a peer, which is imported when that file is."""
