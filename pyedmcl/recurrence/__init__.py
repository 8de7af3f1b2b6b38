"""Recurrence analysis: line histograms by divide and recombine, and the measures that follow from them."""
