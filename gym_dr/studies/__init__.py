"""Studies and tunings: a file, its variants, their runs, the evaluation, and contrasts between variants."""
