"""The store: one folder per run, named by what determines its numbers, and its readers."""
