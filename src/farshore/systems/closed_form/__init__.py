"""Closed-form learners: running sums per domain, and a linear head computed from them."""
