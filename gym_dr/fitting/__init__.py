"""Fits parameters to logs of a real system: reads and checks logs, replays them, and estimates parameters."""
