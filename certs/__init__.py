"""The webhook's certificates: `authority` decides (pure), `rotation` keeps a folder, `reload` serves it."""
