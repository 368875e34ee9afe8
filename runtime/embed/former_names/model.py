"""`runtime.model`, requests and parts: where programs written for release 0.1 import it from."""

from runtime.values.model import *  # noqa: F403
