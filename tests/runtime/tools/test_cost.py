"""What the fixed part of a request costs, by our own estimate: a small window pays it each time."""

import pytest

from acp_server.assembly.session_setup import SYSTEM_PROMPT
from runtime.history.rows.estimate import estimate_tool_schemas, system_floor
from runtime.tools import catalog
from runtime.values.profiles import FEW_TOOLS, GOAL_TOOL, PRESETS, TOOLS
from runtime.values.rows import Row


@pytest.mark.parametrize(("preset", "most"), [("local_small", 700), ("balanced", 3500), ("unbounded", 3500)])
def test_system_prompt_and_tools(preset, most):
    specs = [tool.spec for tool in catalog.load_all(PRESETS[preset].tools)]
    prompt = system_floor([Row("system", SYSTEM_PROMPT)])
    assert prompt + estimate_tool_schemas(specs) <= most


def test_profiles_name_the_tools_that_there_are():
    assert catalog.names() == (*TOOLS, GOAL_TOOL)
    assert PRESETS["balanced"].tools == TOOLS
    assert PRESETS["local_small"].tools == FEW_TOOLS
    assert set(FEW_TOOLS) < set(TOOLS)
