"""Fused layers of the convolutional network: GPU kernels and their plain PyTorch form."""
