"""Runs: one run in, one result out; planned, carried out by engines, kept in a store."""
