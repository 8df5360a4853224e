"""Engines carry out the runs of a plan: in this process, in several, or on a cluster."""
