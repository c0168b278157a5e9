"""The widget in real front ends: JupyterLab, Notebook 7 and marimo in Chromium."""
