"""Commands, settings, wiring: the only place that reads the environment and the real clock."""
