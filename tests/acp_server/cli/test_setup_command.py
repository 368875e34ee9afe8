"""`wholeturn setup` as a person answers it, and what it makes of a settings file."""

import tomllib
from collections.abc import Callable

import pytest

from acp_server.cli.main import run
from acp_server.cli.setup import setup
from acp_server.cli.setup.questions import VENDORS, Machine, Plan, Tty, plan_of, vendor, wanted_keys
from acp_server.config.secrets import store_key, stored_key
from acp_server.config.writing import with_keys
from runtime.providers.detect import Found
from runtime.values.errors import (
    AuthRequired,
    InvalidParams,
    InvalidRequest,
    ProviderError,
    ProviderErrorKind,
)

KEY = "sk-hunter2"


class Person:
    """Answers in order; remembers what was shown."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.shown: list[str] = []

    def say(self, text: str) -> None:
        self.shown.append(text)

    def ask(self, question: str, default: str = "") -> str:
        self.shown.append(question)
        return self.answers.pop(0) or default

    def secret(self, question: str) -> str:
        return self.ask(question)


def machine(found: Found | None = None, **env: str) -> Machine:
    return Machine({"WHOLETURN_CONFIG_DIR": "/nowhere", **env}, lambda vendor: found)


def test_a_hosted_model_with_a_typed_key():
    plan = plan_of(Person("anthropic", KEY, ""), machine())
    assert plan == Plan(
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        KEY,
        vendor("anthropic").model,
    )


def test_a_key_of_the_environment_is_left_where_it_is():
    plan = plan_of(Person("", "", "my-model"), machine(ANTHROPIC_API_KEY="x"))
    assert (plan.name, plan.variable, plan.key, plan.model) == (
        "anthropic",
        "ANTHROPIC_API_KEY",
        "",
        "my-model",
    )


def test_a_key_that_was_stored_is_offered(tmp_path):
    env = {"WHOLETURN_CONFIG_DIR": str(tmp_path)}
    store_key(env, "OPENAI_API_KEY", KEY)
    plan = plan_of(Person("openai", "", ""), Machine(env, lambda vendor: None))
    assert (plan.variable, plan.key) == ("OPENAI_API_KEY", "")


def test_a_server_on_this_machine_says_its_model():
    own = next(one for one in VENDORS if one.name == "llamacpp")
    found = Found(local=None, model="qwen", context_window=4096)  # type: ignore[arg-type]
    plan = plan_of(Person("llamacpp", "", ""), machine(found))
    assert plan == Plan("llamacpp", "openai", own.base_url, "", "", "qwen", 4096)
    other = plan_of(Person("llamacpp", "", "else"), machine(found))
    assert (other.model, other.context_window) == ("else", 0)


def test_a_server_on_this_machine_that_is_not_there_yet():
    person = Person("llamacpp", "", "", "qwen")
    assert plan_of(person, machine()).model == "qwen"
    assert any("Nothing answers on port 8080 of this machine yet" in line for line in person.shown)
    assert any(line.startswith("An answer is needed") for line in person.shown)


def test_a_key_that_is_wanted_is_asked_for_again_with_the_reason():
    person = Person("openai", "", KEY, "m")
    assert plan_of(person, machine()).key == KEY
    assert any(line.startswith("openai wants a key") for line in person.shown)


def test_an_address_without_its_scheme_is_asked_for_again():
    person = Person("custom", "127.0.0.1:9/v1", "http://127.0.0.1:9/v1", "", "", "m")
    assert plan_of(person, machine()).base_url == "http://127.0.0.1:9/v1"
    assert "That is no http:// or https:// address." in person.shown


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--base-url", "127.0.0.1:9/v1", "--no-key"), "base_url must be an http:// or https:// address"),
        (("--base-url", "http://h/v1", "--key-env", "1X"), "api_key_env"),
    ],
)
def test_settings_that_would_be_refused_are_not_written(flags, said, tmp_path, monkeypatch, capsys):
    for name, value in (("WHOLETURN_CONFIG_DIR", str(tmp_path)), ("1X", KEY)):
        monkeypatch.setenv(name, value)
    assert run(["setup", "--provider", "custom", "--model", "m", "--no-try", *flags]) == 1
    told = capsys.readouterr().err
    assert "Nothing was changed" in told
    assert said in told
    assert list(tmp_path.iterdir()) == []


def test_any_other_server_with_a_name_and_a_key_of_its_own():
    person = Person("custom", "", "http://h/v1", "my box", "kéy", KEY, "", "m")
    plan = plan_of(person, machine())
    assert plan == Plan("my box", "openai", "http://h/v1", "MY_BOX_API_KEY", KEY, "m")


def test_wrong_answers_are_asked_again_and_no_key_is_shown():
    person = Person("0", "99", "nobody", "1", "", KEY, "")
    plan = plan_of(person, machine())
    assert plan.name == VENDORS[0].name
    assert KEY not in "\n".join(person.shown)


def test_the_end_of_input_is_told(monkeypatch):
    monkeypatch.setattr("sys.stdin.readline", lambda: "", raising=False)
    with pytest.raises(InvalidRequest, match="nothing was changed"):
        Tty().ask("What?")


# ---------------------------------------------------------------- trying


def refusing(*errors: Exception) -> Callable[[Plan, object], None]:
    left = list(errors)

    def attempt(plan: Plan, env: object) -> None:
        if left:
            raise left.pop(0)

    return attempt


BAD_KEY = ProviderError("The key was refused.", kind=ProviderErrorKind.AUTH, retryable=False)
DOWN = ProviderError("Nobody answers.", kind=ProviderErrorKind.UNREACHABLE, retryable=True)
PLAN = Plan("openai", "openai", "https://h/v1", "OPENAI_API_KEY", "wrong", "m")


def test_a_key_that_is_refused_is_asked_for_again(monkeypatch):
    monkeypatch.setattr(setup, "attempt", refusing(BAD_KEY, AuthRequired("none")))
    person = Person("also wrong", KEY)
    assert setup.tried(person, PLAN, {}).key == KEY
    assert person.shown[-1] == "It answers."


def test_after_three_keys_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(setup, "attempt", refusing(*[BAD_KEY] * 9))
    with pytest.raises(InvalidParams, match="nothing was changed"):
        setup.tried(Person("a", "b", "c"), PLAN, {})


@pytest.mark.parametrize(("answer", "kept"), [("y", True), ("", False)])
def test_a_server_that_is_down_is_the_persons_decision(monkeypatch, answer, kept):
    monkeypatch.setattr(setup, "attempt", refusing(DOWN))
    if kept:
        assert setup.tried(Person(answer), PLAN, {}) == PLAN
    else:
        with pytest.raises(InvalidParams):
            setup.tried(Person(answer), PLAN, {})


# ---------------------------------------------------------------- writing


def test_a_new_file_has_all_it_needs_and_good_manners(tmp_path):
    env = {"WHOLETURN_CONFIG_DIR": str(tmp_path), "WHOLETURN_DATA_DIR": str(tmp_path)}
    person = Person()
    assert setup.write(person, PLAN._replace(key=KEY, context_window=9000), env) == 0
    tree = tomllib.loads((tmp_path / "config.toml").read_text())
    assert tree["providers"]["openai"]["context_window"] == 9000
    assert tree["runtime_profiles"]["default"] == {
        "trim_slack_ratio": 0.2,
        "running_turn_overflow": "shorten",
    }
    assert stored_key(env, "OPENAI_API_KEY") == KEY
    assert KEY not in (tmp_path / "config.toml").read_text() + "\n".join(person.shown)
    assert person.shown[-1] == "New sessions use openai/m."


def test_settings_that_are_there_stay(tmp_path):
    text = (
        'default_agent = "me"\n[agents.me]\nmodel = "old"\nruntime_profile = "mine"\n'
        "[runtime_profiles.mine]\ntrim_slack_ratio = 0.5\n"
    )
    made = with_keys(text, wanted_keys(PLAN, tomllib.loads(text)))
    assert made is not None
    tree = tomllib.loads(made)
    assert tree["agents"]["me"] == {"provider": "openai", "model": "m", "runtime_profile": "mine"}
    assert tree["runtime_profiles"]["mine"] == {"trim_slack_ratio": 0.5, "running_turn_overflow": "shorten"}


def test_a_model_inside_gets_the_profile_for_small_ones():
    keys = wanted_keys(Plan("local", "local", model="smollm2"), {})
    assert keys[("agents", "default", "runtime_profile")] == "local_small"
    assert not [key for key in keys if key[0] == "runtime_profiles"]


def test_a_file_that_cannot_be_edited_is_left_and_the_lines_are_shown(tmp_path):
    (tmp_path / "config.toml").write_text('providers.openai = { kind = "openai" }\n')
    person = Person()
    assert setup.write(person, PLAN._replace(key=""), {"WHOLETURN_CONFIG_DIR": str(tmp_path)}) == 1
    assert "[providers.openai]" in person.shown[-1]
    assert (tmp_path / "config.toml").read_text() == 'providers.openai = { kind = "openai" }\n'


def test_what_stands_above_the_file_is_told(tmp_path):
    env = {"WHOLETURN_CONFIG_DIR": str(tmp_path), "WHOLETURN_PROVIDER": "anthropic"}
    person = Person()
    setup.write(person, PLAN._replace(key=""), env)
    assert "stands above" in person.shown[-1]
