"""States of a series, their neighbours, and the choice of E and tau."""
