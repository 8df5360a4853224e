"""The figures: one module each, imported only if the runs can have data for it."""
