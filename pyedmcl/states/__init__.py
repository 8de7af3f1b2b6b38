"""Arguments of a call, library and predicted rows, and the states that all methods of EDM search among."""
