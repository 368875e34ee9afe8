"""`runtime.providers.scripted_format`: where programs written for release 0.1 import `parse_script` from."""

from runtime.providers.scripted.script import parse_script as parse_script
