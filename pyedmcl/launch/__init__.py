"""How work is put on a device: pooled memory, staged data, paced launches, progress."""
