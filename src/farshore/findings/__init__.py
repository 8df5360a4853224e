"""Audits: what to expect at a site that nobody has seen, and which method to take there.

Every site is left out in turn; the runs are planned, carried out and kept like those of any
comparison. All other modules here are pure functions of their results and of the sites' rows.
"""
