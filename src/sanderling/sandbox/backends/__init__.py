"""Where code runs: one file for each kind of place."""
