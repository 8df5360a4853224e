"""Ordinary models that are fitted to the rows of all sources at once, for reference."""
