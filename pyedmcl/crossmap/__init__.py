"""Maps of all pairs of series, by simplex projection or S-map, over windows and grids, in memory and in folders."""
