"""Search: which settings are tried, and which trial is taken. Selection sees source validation
only.
"""
