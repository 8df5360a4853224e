"""Systems without gradient steps: closed forms, trees, pooled references, and committees."""
