"""The commands of `bayplan`: each module adds its parser and runs it."""
