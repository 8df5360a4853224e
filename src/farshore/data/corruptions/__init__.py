"""The nineteen corruptions of Hendrycks and Dietterich, "Benchmarking Neural Network Robustness
..." (ICLR 2019).
"""
