"""One series at a time: simplex projection, S-map, what skill depends on, and multiview forecasts."""
