"""Kernels for other programs: texts that stand alone, with a description."""
