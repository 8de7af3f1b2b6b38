"""Kernels to take away: texts that stand alone, with a description, for other programs and for devices not at hand."""
