"""The product's version, and nothing else: read at start-up before anything heavy."""

__version__ = "0.1.0"
