"""The training loop, its state, and the defaults by kind of data."""
