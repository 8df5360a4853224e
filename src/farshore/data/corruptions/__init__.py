"""The nineteen corruptions of Hendrycks and Dietterich (ICLR 2019)."""
