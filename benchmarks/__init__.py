"""Measurements: how fast, how much memory, how faithful."""
