"""SCALE-QA: a benchmark of episode integrity for the memory of chat assistants."""
