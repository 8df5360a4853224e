"""Boosted trees as a continual learner for tables."""
