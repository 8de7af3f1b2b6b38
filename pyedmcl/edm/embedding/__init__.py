"""States of a series: how they are made, their neighbours, and the choice of E and tau."""
