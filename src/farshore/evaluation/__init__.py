"""Scores of predictions, and transfer measures of an accuracy matrix: pure functions."""
