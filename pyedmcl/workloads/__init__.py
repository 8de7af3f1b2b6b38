"""Benchmarks of kernels and whole calls."""
