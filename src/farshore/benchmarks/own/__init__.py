"""Benchmarks made from a user's own tables, images and data sets."""
