"""Engines: what carries out the runs of a plan, in this process, in many, or on a cluster."""
