"""Rules as they are written: what is taken, what is refused, and what each pattern covers or may mean."""

import pytest

from runtime.permission import command_rules, patterns
from runtime.permission.command_line import read_line
from runtime.permission.patterns import RuleError
from runtime.permission.rules import Rule, parse_allow, parse_rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("run_command", Rule("run_command")),
        ("run_command:*", Rule("run_command")),
        ("run_command: git status*", Rule("run_command", "git status*")),
        ("edit_file:./src/**", Rule("edit_file", "src/**")),
        ("fetch_url:https://a.example/*", Rule("fetch_url", "https://a.example/*")),
        ("mcp__x__*", Rule("mcp__x__*")),
    ],
)
def test_taken(text, rule):
    assert parse_allow(text) == rule
    assert parse_allow(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "tool's name"),
        ("run command:x", "tool's name"),
        ("run_command:", "nothing after its colon"),
        ("run_command:a\nb", "one line"),
        ("run_command:git status:*", "within a word"),
        ("run_command:ls src/*", "within a word"),
        ("run_command:git * status", "could be an option"),
        ("run_command:git sta*us now", "only at its end"),
        ("run_command:a; b", "one command"),
        ("run_command:a > b", "redirection"),
        ("run_command:a $(b)*", "no plain command"),
        ("run_command:sudo*", "would allow nothing"),
        ("run_command:sudo git status*", "would allow nothing"),
        ("run_command:python -c*", "would allow nothing"),
        ("run_command:sh -c ls*", "would allow nothing"),
        ("run_command:sed -n*", "would allow nothing"),
        ("run_command:git submodule*", "would allow nothing"),
        ("run_command:git submodule foreach*", "would allow nothing"),
        ("run_command:uv run python*", "would allow nothing"),
        ("run_command:cd src", "would allow nothing"),
        ("*", "yolo"),
        ("edit_file:../x", "must not hold .."),
        ("edit_file:~/x", "whole path"),
        ("edit_file:a\\b", "with /"),
        ("edit_file:[z-a]", "means nothing"),
        ("fetch_url:ftp://x", "an address"),
        ("fetch_url:https://u@x/", "an address"),
        ("fetch_url:https://example.org*", "an address"),
    ],
)
def test_refused(text, word):
    with pytest.raises(RuleError, match=word.replace("*", r"\*").replace(".", r"\.")):
        parse_allow(text)


def test_what_may_not_allow_may_deny():
    assert parse_rule("run_command:sudo*") == Rule("run_command", "sudo*")
    assert parse_rule("*") == Rule("*")


def covers(pattern: str, line: str) -> bool:
    (command,) = read_line(line).commands
    return command_rules.covers(command_rules.parse_command(pattern), command)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git status*", "git status --short"),
        ("git status*", "git 'status'"),
        ("git*", "git push origin"),
        ("make all", "make all"),
        ("sudo ls", "sudo ls"),
        ("git log --output=x*", "git log --output=x -n 1"),
        ("python manage.py test*", "python manage.py test -k x"),
        ("python3 -m pytest*", "python3 -m pytest -q"),
        ("uv run pytest*", "uv run pytest -x"),
        ("ls*", "ls src/*.py"),
        ("*", "whatever x"),
    ],
)
def test_covered(pattern, line):
    assert covers(pattern, line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("git status*", "git statusx"),
        ("git status*", "git -c x status"),
        ("git status*", "/usr/bin/git status"),
        ("git status*", "GIT status"),
        ("git status", "git status -s"),
        ("git*", "git -c core.pager=x log"),
        ("git*", "git --exec-path=x log"),
        ("git*", "git log --outp=x"),
        ("git*", "git grep -nOx y"),
        ("git*", "git submodule foreach x"),
        ("git clone*", "git clone -u x y"),
        ("find*", "find . -delete"),
        ("find*", "find . -execdir x"),
        ("rg*", "rg --pre x y"),
        ("sort*", "sort -uo x"),
        ("npm*", "npm exec x"),
        ("npm test*", "npm test --prefix x"),
        ("npm exec x*", "npm exec x -c y"),
        ("npm*", "npm a*"),
        ("make all*", "make all SHELL=x"),
        ("pytest*", "pytest @arguments.txt"),
        ("pytest*", "pytest --junit-xml=../x"),
        ("pytest*", "pytest --pastebin=all"),
        ("mypy*", "mypy --cache-dir=/x src"),
        ("go test*", "go test -exec x"),
        ("python3 -m pytest*", "python3 -m pytest -p x"),
        ("uv run pytest*", "uv run pytest --rootdir=x"),
        ("sudo ls", "sudo ls x"),
        ("ls 'a*'", "ls a*"),
        ("xargs rg", "xargs rg --pre x"),
    ],
)
def test_not_covered(pattern, line):
    assert not covers(pattern, line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("rm*", "ls; rm x"),
        ("rm*", "/bin/rm x"),
        ("rm*", "RM x"),
        ("rm*", "sudo -u root rm x"),
        ("rm*", "find . -exec rm {} ;"),
        ("rm*", "find . -exec rm x +"),
        ("rm*", "sh -c 'cd x; rm -rf y'"),
        ("rm*", "echo $(rm x)"),
        ("rm*", 'if x; then r"m" y; fi'),
        ("git push*", "git -C x push"),
        ("git push*", "git -c x=y push"),
        ("git push*", "A=$b git push"),
        ("git push*", "git --git-dir x -v push --force"),
        ("git push*", "(git push)"),
        ("rm -rf /", "rm -rf /"),
        ("*", "anything"),
    ],
)
def test_may_be_meant(pattern, line):
    assert command_rules.may_mean(command_rules.parse_command(pattern), read_line(line), line)


@pytest.mark.parametrize(
    ("pattern", "line"),
    [("rm*", "echo rm"), ("rm*", "ls"), ("git push*", "git log push"), ("rm -rf /", "rm -rf /tmp/x")],
)
def test_is_not_meant(pattern, line):
    assert not command_rules.may_mean(command_rules.parse_command(pattern), read_line(line), line)


def test_options_in_great_number_are_looked_through_in_no_time():
    line = "git " + "-x " * 3000 + "log"
    assert not command_rules.may_mean(command_rules.parse_command("git push*"), read_line(line), line)


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ("git status -s", "git status*"),
        ("npm test", "npm test*"),
        ("npm run build --x", "npm run build*"),
        ("npm install left-pad", "npm install left-pad"),
        ("make test", "make test"),
        ("just build", "just build"),
        ("gh pr list --limit 3", "gh pr list*"),
        ("git stash list", "git stash list*"),
        ("git stash", "git stash"),
        ("pytest @more", None),
        ("pytest --junitxml=x", None),
        ("mypy --html-report=x .", None),
        ("ls -la", "ls*"),
        ("uv run pytest -q", "uv run pytest*"),
        ("cat notes", "cat notes"),
        ("./run.sh 'a b'", "./run.sh 'a b'"),
        ("frobnicate -x 1", "frobnicate -x 1"),
        ("git -C x status", None),
        ("git", "git"),
        *(
            (line, None)
            for line in ("python x.py", "sh -c ls", "sudo ls", "env ls", "xargs ls", "cd x", "node x")
        ),
        *(
            (line, None)
            for line in ("find . -delete", "git submodule foreach x", "uv run python x", "cat src/*")
        ),
        *((line, None) for line in ("rg --pre x y", "python3.12 -m pytest", "/usr/bin/env ls", "BASH -c x")),
    ],
)
def test_suggested(line, pattern):
    (command,) = read_line(line).commands
    assert command_rules.suggest(command) == pattern


ADDRESS = [
    ("https://a.example/docs/*", "https://a.example/docs/x?y=1", True),
    ("a.example", "https://a.example", True),
    ("a.example", "https://A.example/x", True),
    ("*.example", "https://a.example/", True),
    ("https://a.example:8443/*", "https://a.example:8443/x", True),
    ("https://a.example/x", "https://a.example/x", True),
    ("a.example", "http://a.example/", False),
    ("*.example", "https://example/", False),
    ("a.example", "https://a.example.evil.example/", False),
    ("a.example", "https://a.example@evil.example/", False),
    ("a.example", "https://evil.example/?https://a.example/", False),
    ("a.example", "https://evil.example#@a.example/", False),
    ("a.example", "https://evil.example\\@a.example/", False),
    ("a.example", "https://a.example:8443/", False),
    ("a.example", "https://a.example./", False),
    ("a.example", "https://a.example\n/", False),
    ("https://a.example/docs/*", "https://a.example/docs/../x", False),
    ("https://a.example/docs/*", "https://a.example/docs/%2E%2e/x", False),
    ("https://a.example/docs/*", "https://a.example/docs\\..\\x", False),
    ("https://a.example/x", "https://a.example/xy", False),
]


@pytest.mark.parametrize(("pattern", "address", "covered"), ADDRESS)
def test_addresses(pattern, address, covered):
    assert patterns.covers(patterns.parse_address(pattern), address) is covered


@pytest.mark.parametrize("address", ["http://A.example./x", "https://u@a.example:1/", " https://a.example/x"])
def test_addresses_that_may_be_meant(address):
    assert patterns.may_mean(patterns.parse_address("a.example"), address)


@pytest.mark.parametrize(
    ("address", "pattern"),
    [
        ("https://docs.example.org/a/b", "https://docs.example.org/*"),
        ("http://a.example:8080/", "http://a.example:8080/*"),
        ("https://127.0.0.1/", None),
        ("https://localhost/", None),
        ("https://u:p@a.example/", None),
    ],
)
def test_suggested_addresses(address, pattern):
    assert patterns.suggest(address) == pattern


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("**/*.py", "a.py", True),
        ("**/*.py", "x/y/a.py", True),
        ("*.py", "x/a.py", False),
        ("a[0-9].py", "a7.py", True),
        ("a[!0-9].py", "a7.py", False),
        ("a?b", "a/b", False),
        ("a[/]b", "a/b", False),
        ("a[^x]b", "a^b", True),
        ("src/**", "srcx/a", False),
        ("a.py", "axpy", False),
    ],
)
def test_globs(pattern, path, fits):
    assert patterns.matches(pattern, path) is fits


@pytest.mark.parametrize("path", ["secrets", "secrets/a", "Secrets/A/b"])
def test_a_folder_that_is_denied_is_denied_with_all_below(path):
    assert patterns.reaches("secrets/", path)
    assert not patterns.reaches("secrets", f"x{path}")
