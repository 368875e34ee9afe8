"""Whatever stands in a file, a variable or a flag: settings come out, or a ConfigError with a place."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_server.config.effective import as_json, as_text, settings_in_force
from acp_server.config.load import load_user_config, view_for
from acp_server.config.settings import Options
from runtime.values.errors import ConfigError
from schemas import config as schema

SECTIONS = (
    schema.ConfigFile,
    schema.AgentSection,
    schema.ProviderSection,
    schema.ModelSection,
    schema.PriceSection,
    schema.ProfileSection,
    schema.PruningSection,
    schema.AcpSection,
)
WORDS = sorted({name for section in SECTIONS for name in schema.keys_of(section)} | {"x", '"a b"', "ümlaut"})
VALUES = [
    "1",
    "-1",
    "0.5",
    "nan",
    "true",
    '"x"',
    '"openai"',
    '"http://h/v1"',
    '"tight"',
    "{}",
    "[]",
    "1979-05-27",
]

keys = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(".".join)
headers = st.one_of(keys.map(lambda key: f"[{key}]"), keys.map(lambda key: f"[[{key}]]"))
pairs = st.builds(lambda key, value: f"{key} = {value}", keys, st.sampled_from(VALUES))
noise = st.text(alphabet="ab.=[]{}\"'#\\ 1", max_size=12)
texts = st.lists(st.one_of(headers, pairs, pairs, noise), max_size=8).map("\n".join)


def outcome(user, project, env, assignments):
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "config.toml").write_text(user, encoding="utf-8")
        (folder / ".wholeturn.toml").write_text(project, encoding="utf-8")
        env = {"WHOLETURN_CONFIG_DIR": name, **env}
        try:
            view = view_for(load_user_config(Options(assignments=assignments), env), folder)
        except ConfigError as error:
            refused = str(error)
        else:
            return shown(view, env)
    assert refused
    assert all(line.isprintable() for line in refused.split("\n"))


def shown(view, env):
    found = settings_in_force(view, env)
    assert as_json(view, found, True)
    # Words without a blank (paths, long names) are left whole; everything else stays in the page.
    long = [line for line in as_text(view, found, True).split("\n") if len(line) > 80]
    assert all("/" in line or "#" in line for line in long)


@settings(max_examples=150, deadline=None)
@given(texts, texts)
def test_files(user, project):
    outcome(user, project, {}, ())


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.one_of(
            keys.map(lambda key: "WHOLETURN_" + key.replace(".", "__").upper()),
            st.sampled_from(["PROVIDER", "MODEL", "BASE_URL", "SCRIPT", "PROFILE"]).map(
                "WHOLETURN_{}".format
            ),
        ),
        st.one_of(
            st.sampled_from(VALUES), st.sampled_from(["openai", "scripted", "tight", "http://h"]), noise
        ),
        max_size=4,
    ),
    st.lists(st.one_of(pairs, noise), max_size=3).map(tuple),
)
def test_variables_and_flags(env, assignments):
    outcome('[providers."a b"]\nkind = "openai"', "", env, assignments)
