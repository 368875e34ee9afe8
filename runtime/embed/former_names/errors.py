"""`runtime.errors`, the exception tree: where programs written for release 0.1 import it from."""

from runtime.values.errors import *  # noqa: F403
