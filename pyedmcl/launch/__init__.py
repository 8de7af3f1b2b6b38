"""How work is put on a device: staged data, paced launches, progress, small calls that are repeated."""
