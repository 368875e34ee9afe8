"""`runtime.events`, what happened in a session: where programs written for release 0.1 import it from."""

from runtime.values.events import *  # noqa: F403
