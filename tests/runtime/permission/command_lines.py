"""Command lines to be judged: a fixed list of tricks, and made ones, always the same."""

import random
from collections.abc import Iterator

ALLOW = (
    "run_command:git status*",
    "run_command:git log*",
    "run_command:npm test*",
    "run_command:npm run build*",
    "run_command:ls*",
    "run_command:find src*",
    "run_command:rg*",
    "run_command:sort*",
    "run_command:make check*",
    "run_command:cat README.md",
)
"""The rules that the lines below are judged by."""

GOOD = (
    "git status",
    "git status --short src",
    "git log -n 3 --oneline",
    "git log -- src/a.py",
    "npm test",
    "npm test -- --watch",
    "npm run build",
    "ls",
    "ls -la src",
    "ls src/*.py",
    "find src -name a.py",
    "rg -n foo src",
    "sort notes",
    "make check",
    "cat README.md",
    "git status 'a b' \"c d\"",
    "git status >/dev/null 2>&1",
    'git status "a\\"; rm x "',
    "git status '\n'rm x",
)
"""Lines that run without asking."""

BAD = (
    "rm -rf src",
    "evil",
    "curl http://x",
    "sudo git status",
    "env git status",
    "env rm x",
    "nohup rm x",
    "nice -n 5 rm x",
    "timeout 5 rm x",
    "xargs rm",
    "command rm x",
    "exec rm x",
    "eval 'rm x'",
    "sh -c 'rm x'",
    "bash -c 'git status; rm x'",
    "find . -exec rm {} ;",
    "find src -exec rm {} \\;",
    "find src -delete",
    "find src -ok rm x",
    "git -c alias.x=rm x",
    "git -c rm status",
    "git --exec-path=rm status",
    "git log --output=made",
    "git log --outp=made",
    "git submodule foreach rm x",
    "git statusx",
    "git.exe status",
    "rg --pre rm foo",
    "rg --pre=rm foo",
    "sort -o made notes",
    "sort -no made notes",
    "sort --compress-program rm notes",
    "sort --compress-pro=rm notes",
    "sort --output=made notes",
    "tar --to-command rm -xf x",
    "make check SHELL=rm",
    "make check --eval rm",
    "npm exec rm",
    "npm test --script-shell=rm",
    "sed -i s/a/b/ notes",
    "awk 'BEGIN{system(\"rm x\")}'",
    "cat README.md notes",
    "tee made",
    "PATH=/x git status",
    "LD_PRELOAD=x git status",
    "X=rm; $X x",
    "cd src",
    "python3 -c 'x'",
)
"""Lines that must not run without asking."""

TRICKS = (
    "git status && rm x",
    "git status & rm x",
    "git status | rm x",
    "git status || rm x; rm x",
    "git status\nrm x",
    "git status\r\nrm x",
    "git status\rrm x",
    "git status; (rm x)",
    "(rm x)",
    "{ rm x; }",
    "git status $(rm x)",
    "git status `rm x`",
    'git status "$(rm x)"',
    'git status "`rm x`"',
    "git status '$(rm x)' $(rm x)",
    "git status <(rm x)",
    "git status >(rm x)",
    "git status > made",
    "git status >> made",
    "git status >| made",
    "git status &> made",
    "git status >& made",
    "git status 2> made",
    "git status 1>made 2>&1",
    "git status <> made",
    "> made git status",
    "git status 10>made",
    "cat <<E\n$(rm x)\nE",
    "cat README.md <<E\n$(rm x)\nE",
    "if git status; then rm x; fi",
    "for i in 1; do rm x; done",
    "while rm x; do break; done",
    "case x in x) rm x;; esac",
    "git() { rm x; }; git status",
    "function git { rm x; }; git status",
    "alias git=rm\ngit status",
    "trap 'rm x' EXIT; git status",
    "export PATH=src; git status",
    "! rm x",
    "time rm x",
    "coproc rm x",
    'g"i"t status && r""m x',
    "\\rm x",
    "r\\m x",
    "$'rm' x",
    "$'\\x72m' x",
    '"rm" x',
    "'rm' x",
    "rm\tx",
    "git status # x\nrm x",
    "# git status\nrm x",
    "git status \\\n; rm x",
    "git status \\\\; rm x",
    "git status 'a\\'; rm x ''",
    "git status 'a\\''; rm x'",
    'git status "a\\\\"; rm x ""',
    "git status ''\nrm x",
    "git\u00a0status; rm x",
    "git status\u2028rm x",
    "git status\u0085rm x",
    "git status\x00; rm x",
    "git status\x0brm x",
    "git status;; rm x",
    "git status |& rm x",
    "git status;&rm x",
    "~/bin/rm x",
    "*m x",
    "r? x",
    "[r]m x",
    "{rm,x}",
    "r{m,} x",
    "$HOME/rm x",
    "${X:-rm} x",
    "$((rm))",
    "$[rm]",
    "eval git status",
    "source notes",
    ". ./notes",
    "find src *",
    "find src -e*c rm x",
    "hash -p /bin/rm git; git status",
    "printf -v PATH src; git status",
    "read PATH < notes; git status",
    'set -- rm; "$@" x',
    "test -v 'a[$(rm x)]'",
    "[ -v 'a[$(rm x)]' ]",
    "unset 'a[$(rm x)]'",
    "let 'a[$(rm x)]=1'",
    'ls "${a[$(rm x)]}"',
    "ls;\nrm x",
    "ls &&\nrm x",
    "ls |\n\nrm x",
    "/usr/bin/env rm x",
    "./rm x",
    "src/../rm x",
    "ls & & rm x",
    "ls>made",
    "ls>/dev/null>made",
    "ls 2>/dev/null>made",
    "ls >&2>made",
    "ls >'made'",
    "ls >/dev/../made",
    "=rm x",
    "ls =rm",
    "^rm^x",
    "!rm",
    "ls !rm",
    "%1",
    "",
    "   ",
    ";",
    "&&",
    "ls &&",
    "ls |",
    "ls >",
    "'",
    'ls "',
    "ls \\",
)

_JOINS = ("; ", " ; ", " && ", " || ", " | ", " & ", "\n", ";", "&&", "|", "||", "&", "\n\n", " &&\n")
_AROUND = (
    "({})", "{{ {}; }}", "$({})", "`{}`", "\"$({})\"", "! {}", "eval '{}'", "sh -c '{}'", "env {}",
    "xargs {}", "nohup {}", "sudo {}", "if {}; then {}; fi", "for i in 1 2; do {}; done", "time {}",
    "f() {{ {}; }}; f", "X=1 {}", "{} > made", "{} 2>made", "{} < notes", "{} <<< x", "exec {}",
    "command {}", "{} # x",
)  # fmt: skip
_WITHIN = ("$({})", "`{}`", '"$({})"', '"`{}`"', "<({})", "${{X:-$({})}}", "x$({})y", "'$({})'")
_MARKS = (
    *";&|<>()$`\\\"'*?[]#~=%!{}^-\n\r\t",
    "\u00a0",
    "\x00",
    "rm",
    " rm x",
    "$(rm x)",
    "-exec rm",
    "\\\n",
)


def made_lines(count: int, seed: int = 20) -> Iterator[str]:
    """That many different lines, joined, wrapped and damaged."""
    source, seen = random.Random(seed), set[str]()
    while len(seen) < count:
        line = source.choice((_joined, _joined, _wrapped, _embedded, _damaged))(source)
        if line not in seen:
            seen.add(line)
            yield line


def _joined(source: random.Random) -> str:
    parts = [source.choice(GOOD if source.random() < 0.6 else BAD) for _ in range(source.randint(2, 4))]
    line = parts[0]
    for part in parts[1:]:
        line += source.choice(_JOINS) + part
    return line


def _wrapped(source: random.Random) -> str:
    inner = source.choice((*GOOD, *BAD, *BAD))
    around = source.choice(_AROUND).replace("{}", inner).replace("{{", "{").replace("}}", "}")
    return source.choice(GOOD) + source.choice(_JOINS) + around if source.random() < 0.5 else around


def _embedded(source: random.Random) -> str:
    """A good command with another one somewhere in its arguments."""
    inner = (
        source.choice(_WITHIN)
        .replace("{}", source.choice((*GOOD, *BAD, *BAD)))
        .replace("{{", "{")
        .replace("}}", "}")
    )
    words = source.choice(GOOD).split(" ")
    words.insert(source.randint(1, len(words)), inner)
    return " ".join(words)


def _damaged(source: random.Random) -> str:
    line = source.choice(GOOD) if source.random() < 0.5 else _joined(source)
    for _ in range(source.randint(1, 3)):
        place = source.randint(0, len(line))
        line = line[:place] + source.choice(_MARKS) + line[place + source.randint(0, 1) :]
    return line
