"""The parts of docs/reproduction.md: what is measured for each of them, and how it reads."""
