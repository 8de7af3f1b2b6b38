"""Devices: finding, choosing and using them. The only room that knows of an OpenCL binding."""
