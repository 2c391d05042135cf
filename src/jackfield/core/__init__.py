"""The decisions: pure functions, one file per step of a claim's life. Start reading at `lifecycle`."""
