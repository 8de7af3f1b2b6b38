"""What is computed from tables of neighbours and from distances: lookups, predictions, skill, sampled maps, S-map."""
