"""How a step is carried out: eager, recorded once and replayed, or compiled."""
