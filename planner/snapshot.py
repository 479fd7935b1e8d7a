"""What the cluster looked like at one moment: nodes, what is used on them, and who holds what."""
