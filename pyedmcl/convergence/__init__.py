"""Convergent cross mapping: skill that grows with the library, of one pair and of all."""
