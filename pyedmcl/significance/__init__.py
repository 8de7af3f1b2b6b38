"""P-values of cross maps, from surrogates."""
