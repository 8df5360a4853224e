"""Systems without gradient steps: closed forms, boosted trees, and committees of systems."""
