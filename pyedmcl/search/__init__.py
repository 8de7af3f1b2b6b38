"""Searches for nearest neighbours, which all end in the same tables on the device."""
