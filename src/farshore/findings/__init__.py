"""Audits: what to expect at a site that nobody has seen, and which method to use there.

Every site is left out in turn; the runs are planned, carried out and kept like those of any
comparison. Everything else here is a pure function of their results and of the sites' rows.
"""
