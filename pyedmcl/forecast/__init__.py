"""One series at a time: simplex projection, S-map, skill against one parameter, multiview forecasts."""
