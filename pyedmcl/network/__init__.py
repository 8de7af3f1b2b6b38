"""From maps and tests to a network of causes: links that others explain, delays, verdicts."""
