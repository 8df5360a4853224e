"""How many training steps a domain gets by default: from its rows, within bounds."""

import math

# Passes over the training rows of a domain, in batches of BATCH_SIZE rows.
EPOCHS = 20.0
BATCH_SIZE = 64
# Few rows still need enough updates; many rows stop paying off.
FEWEST_STEPS, MOST_STEPS = 100, 1000


def usual_steps(rows: float, epochs: float = EPOCHS) -> int:
    """Return the steps for a domain with this many training rows."""
    return min(max(math.ceil(epochs * rows / BATCH_SIZE), FEWEST_STEPS), MOST_STEPS)
