"""Our plugin, a driver on the kit: finds devices on a node, sees them come and go, prepares them."""
