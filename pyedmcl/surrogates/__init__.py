"""Series that are like the observed ones by chance, and the streams of random numbers for them."""
