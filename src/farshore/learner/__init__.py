"""The learner: the user's verbs, and what it consists of beside its system."""
