"""Kernel texts: specs, rendering, building."""
