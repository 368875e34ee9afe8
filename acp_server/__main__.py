"""The `wholeturn` command: a bare start is the ACP server, a word is a command.

Imports next to nothing itself: the server answers `initialize` before its heavy imports.
"""

import sys


def main() -> int:
    """Serve on stdin and stdout, or run the named command. Returns the exit status."""
    arguments = sys.argv[1:]
    if arguments:
        from acp_server.cli.main import run

        return run(arguments)
    from acp_server.start import start

    return start()


if __name__ == "__main__":
    sys.exit(main())
