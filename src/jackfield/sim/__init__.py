"""The simulated world: virtual time, chance under control, a fabric and its hosts, scenarios and torture."""
