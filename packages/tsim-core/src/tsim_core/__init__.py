"""TSIM: the episode is the memory."""
