"""Kernels of the corpus, by what they are."""
