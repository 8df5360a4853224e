"""The paper's printed numbers, and the file of them that `farshore report --published` joins."""
