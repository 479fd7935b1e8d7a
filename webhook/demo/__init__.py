"""The demo: the real webhook on loopback, asked as an API server asks, and shown to a person."""
