"""What a user holds, as validated, named and conditioned series."""
