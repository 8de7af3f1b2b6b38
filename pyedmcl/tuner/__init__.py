"""The search for good kernel parameters, in processes of their own."""
