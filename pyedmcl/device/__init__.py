"""Devices: find, choose and use them. The only package that imports PyOpenCL or dpctl."""
