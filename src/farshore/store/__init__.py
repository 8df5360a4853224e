"""The store: one folder per run, named by what decides its numbers, and everything that reads
such folders.
"""
