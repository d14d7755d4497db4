"""The robustness report: one self-contained HTML file."""
