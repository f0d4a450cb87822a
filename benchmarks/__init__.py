"""Speed, measured as ratios against a baseline of the same run: ``python -m benchmarks``."""
