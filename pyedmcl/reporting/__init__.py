"""Results as one HTML file that needs no network: what was run, maps, tables, networks, curves and pictures."""
