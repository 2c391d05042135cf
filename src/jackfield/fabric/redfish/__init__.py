"""What the adapters for Redfish and Sunfish have in common: one service, spoken to by one process.

`options` is what an operator says of it, `access` how calls prove who sends them and how they end, `tree` what the
service shows, `stock` what of that is an inventory, `site` whose turn it is; `specific`, `constrained` and `removal`
are how a block comes to a machine and leaves it, `events` what the service tells unasked, `adapter` the port. Knows no
vendor. Must not know why a device is moved.
"""
