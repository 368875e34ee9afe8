"""The `wholeturn` command: a bare start is the ACP server, a word is a command.

Imports next to nothing itself: the server answers `initialize` before its heavy imports.
"""

import sys

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""


def main() -> int:
    """Serve on stdin and stdout, or run the named command. Returns the exit status."""
    try:
        return _run(sys.argv[1:])
    except (KeyboardInterrupt, BaseExceptionGroup) as error:
        # Ctrl-C while modules are still loaded: nobody wants to see which.
        if not _is_interrupt(error):
            raise
        return INTERRUPTED


def _run(arguments: list[str]) -> int:
    if arguments:
        from acp_server.cli.main import run

        return run(arguments)
    from acp_server.start.start import start

    return start()


def _is_interrupt(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(KeyboardInterrupt)[1] is None
    return isinstance(error, KeyboardInterrupt)


if __name__ == "__main__":
    sys.exit(main())
