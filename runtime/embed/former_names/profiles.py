"""`runtime.profiles`, limits of a session: where programs written for release 0.1 import it from."""

from runtime.values.profiles import *  # noqa: F403
