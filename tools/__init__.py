"""Helpers for setting up, checking and releasing the project; no part of the package."""
