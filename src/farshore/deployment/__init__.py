"""A deployed model: a folder on disk that keeps learning, from the data of one site at a time."""
