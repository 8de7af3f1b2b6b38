"""Series that are like the observed ones by chance, in groups and seasons, and streams of random numbers for them."""
