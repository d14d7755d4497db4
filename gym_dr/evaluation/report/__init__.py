"""One HTML file that says what the randomization brought: it opens from disk and needs nothing else."""
