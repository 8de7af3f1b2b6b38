"""Adapters with the names, signatures and returns of other packages: change one import and keep the script."""
