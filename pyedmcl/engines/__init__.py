"""What is computed from neighbour tables and distances: lookups, projections, skill, sampled cross maps, S-map."""
