"""What is known of programs: those that run others, subcommands, options that execute or write. Tables only.

They name what is common and are no proof: a program that stands in none of them is trusted with its further
arguments when a person's own rule says so, and is never offered to be allowed with any others for good.
"""

from collections.abc import Mapping


def words(text: str) -> frozenset[str]:
    """The words of a table."""
    return frozenset(text.split())


BUILTINS = words(
    """
    . source eval exec command builtin alias unalias set shopt setopt unsetopt emulate trap export
    readonly declare typeset local unset hash enable disable cd chdir pushd popd dirs printf test [
    read mapfile readarray getopts let wait jobs fg bg disown suspend umask ulimit type exit logout
    return break continue shift bind complete compgen compopt caller history fc times zmodload
    autoload functions zle vared print zcompile bye abbr float integer sched
    """
)
"""Words of the shell itself that change what later words mean, or evaluate their arguments."""

RUNNERS = words(
    """
    env sudo doas su runuser run0 pkexec xargs parallel nohup nice ionice timeout gtimeout time
    gtime stdbuf setsid setarch linux32 linux64 arch caffeinate chroot unshare nsenter bwrap
    firejail flock watch entr strace ltrace perf valgrind gdb lldb script expect unbuffer rlwrap ssh
    sshpass mosh scp sftp rsync docker podman nerdctl kubectl helm tmux screen at batch crontab
    systemd-run systemctl launchctl open xdg-open busybox toybox npx bunx pnpx uvx pipx direnv mise
    asdf nix nix-shell nix-build chronic taskset numactl chrt prlimit cgexec xvfb-run faketime
    dbus-run-session fakeroot proot torsocks proxychains tar gtar bsdtar zip cpio sed gsed awk gawk
    mawk nawk fish csh tcsh elvish nu pwsh powershell cmd deno bun ts-node tsx ipython php irb raku
    julia osascript tclsh wish guile racket sbcl clisp ghci runghc scala groovy jshell java kotlin
    erl elixir iex octave gnuplot m4 dc ed ex vi vim nvim emacs nano less more most man psql mysql
    sqlite3 tex latex pdflatex xelatex lualatex timeit cprofile profile pdb trace runpy code
    """
)
"""Programs that run what their arguments or their files say. Only the whole command can be allowed."""

INTERPRETERS = words("sh bash dash zsh ksh mksh ash python pypy node ruby perl lua luajit rscript")
"""Programs that take a script first and give it all that follows."""

NESTED: Mapping[str, frozenset[str]] = {
    "git": words("submodule bisect difftool mergetool filter-branch for-each-repo hook config rebase"),
    "npm": words("exec x explore config set init create"),
    "pnpm": words("exec dlx config create init"),
    "yarn": words("exec dlx node config create init"),
    "pip": words("config"),
    "uv": words("run tool x"),
    "poetry": words("run config"),
    "go": words("run generate tool env"),
    "gh": words("api alias extension codespace"),
    "cargo": words("config"),
    "rustup": words("run"),
    "dotnet": words("exec run tool script"),
}
"""Subcommands that run what follows them, or change what later calls do."""

PASSING = frozenset(
    {("npm", "exec"), ("npm", "x"), ("pnpm", "exec"), ("pnpm", "dlx"), ("uv", "run"), ("poetry", "run")}
)
"""Those of them whose next word is a program, which gets all that follows."""

FETCHING: Mapping[str, frozenset[str]] = {
    "git": words("clone"),
    "npm": words("install i add edit link"),
    "pnpm": words("install i add link"),
    "yarn": words("install add link"),
    "pip": words("install download wheel"),
    "uv": words("pip add"),
    "poetry": words("add"),
    "cargo": words("install add"),
    "go": words("install get"),
    "dotnet": words("add new"),
}
"""Subcommands that run code of whatever they are given: offered with exactly that."""

SUBCOMMANDS = words("git npm pnpm yarn pip pip3 uv poetry cargo go gh dotnet rustup make just task ruff")
"""Programs whose second word says what they do."""

SCRIPTS = frozenset(
    {
        *(("npm", "run"), ("npm", "run-script"), ("pnpm", "run"), ("yarn", "run")),
        *(("git", "stash"), ("git", "remote"), ("git", "worktree"), ("uv", "cache")),
        *(
            ("gh", what)
            for what in words("pr issue repo release run workflow auth secret variable gist cache")
        ),
    }
)
"""Subcommands whose next word does."""

TARGETS = frozenset({"make", "just", "task"})
"""Programs that do what each of their words names: a prefix would let others follow."""

PLAIN = words(
    """
    ls wc pwd echo fd find stat file du df tree basename dirname realpath readlink which whoami id
    uname date md5sum sha1sum sha256sum shasum pytest mypy tsc
    """
)
"""Programs that can be offered with any arguments, apart from the options below.

None that prints what is in a file: that could be a secret, and there is a tool for it which asks then.
"""

_PACKAGES = "prefix|C|script-shell|node-options|userconfig|globalconfig|call|c|package|dir|cwd"
_OPTIONS = {
    "git": "c|exec-path|config-env|output|ext-diff|textconv|open-files-in-pager|O|exec|x|upload-pack|"
    "receive-pack|extcmd|template|config|git-dir|work-tree|C",
    "git clone": "u",
    "find": "exec|execdir|ok|okdir|delete|fprint|fprint0|fprintf|fls",
    "fd": "x|X|exec|exec-batch|l|list-details",
    "rg": "pre|hostname-bin|z|search-zip",
    "ag": "pager",
    "ack": "pager|output",
    "sort": "o|output|compress-program",
    "split": "filter",
    "tree": "o|R",
    "file": "C|compile|m|magic-file",
    "date": "s|set",
    "yq": "i|inplace",
    "npm": _PACKAGES,
    "pnpm": _PACKAGES,
    "yarn": _PACKAGES,
    "cargo": "config|manifest-path|C|Z",
    "go": "exec|toolexec|vettool|overlay|modfile|C",
    "make": "f|file|makefile|C|directory|eval|I|include-dir",
    "just": "f|justfile|d|working-directory|shell|c|command|set|chooser",
    "pytest": "p|c|o|rootdir|confcutdir|override-ini|config-file|basetemp|pdbcls|junitxml|junit-xml|log-file|"
    "debug|pastebin|report-log|cov-report|cov-config",
    "mypy": "config-file|python-executable|install-types|junit-xml|cache-dir|shadow-file|any-exprs-report|"
    "cobertura-xml-report|html-report|linecount-report|linecoverage-report|lineprecision-report|txt-report|"
    "xml-report|xslt-html-report|xslt-txt-report",
    "ruff": "config",
    "tsc": "p|project|b|build|plugins|init|outDir|outFile|declarationDir|tsBuildInfoFile|generateTrace|"
    "generateCpuProfile",
    "pip": "python",
    "gcc": "wrapper|fplugin|specs|B",
    "curl": "K|config|o|O|output|remote-name|output-dir|T|upload-file",
    "wget": "use-askpass|e|execute|O|output-document|P|i|config",
}
OPTIONS: Mapping[str, frozenset[str]] = {name: frozenset(text.split("|")) for name, text in _OPTIONS.items()}
"""Options, without dashes, that execute, write, or lead the program elsewhere. One letter: a short one."""

READING_ARGUMENTS = words("pytest mypy tsc gcc clang javac")
"""Programs that take further arguments out of the file behind an @."""

BY_FOLDER = words("git hg")
"""Programs that run what the settings of the folder say that they are started in, or of one above it."""

ASSIGNING = frozenset({"make", "just"})
"""Programs for which a word with = sets a variable."""
