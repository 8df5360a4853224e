"""Answers: pure functions of the results of runs."""
