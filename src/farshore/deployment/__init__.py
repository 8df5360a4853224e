"""A model in the field: a folder on disk that goes on learning, with the data of one site at a
time.
"""
