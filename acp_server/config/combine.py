"""File layers, variables and flags to one checked tree. Knows the order of the sources; builds nothing."""

from collections.abc import Mapping, Sequence

from acp_server.config import check, references
from acp_server.config.environment import text_layers, unknown_variables
from acp_server.config.layers import Layer
from acp_server.config.merge import Merged, merge
from acp_server.config.options import Options, given_variables
from acp_server.config.paths import here
from runtime.errors import ConfigError


def combine(
    options: Options, env: Mapping[str, str], files: Sequence[Layer]
) -> tuple[Merged, list[Layer], list[str]]:
    """The merged tree, all layers (weaker first), and remarks about what has no effect.

    files: weaker first. Raises ConfigError with every fault of every source, a line each.
    """
    variables = given_variables(env)
    texts = text_layers(variables, options, merge(files).tree, here())
    layers = [*files, *texts]
    merged = merge(layers)
    faults = [fault for layer in layers for fault in check.faults(layer)]
    # A value that is wrong in itself leads nowhere either: that is one fault, not two.
    told = {fault.partition(": ")[0] for fault in faults}
    lost = [
        fault
        for fault in references.faults(merged, check.MOST_FAULTS)
        if fault.partition(": ")[0] not in told
    ]
    raise_faults([*faults, *lost])
    return merged, layers, [*unknown_variables(variables), *references.remarks(merged, check.MOST_FAULTS)]


def raise_faults(faults: Sequence[str]) -> None:
    """Raises ConfigError for one fault or many; does nothing for none."""
    if faults:
        head = f"{len(faults)} settings cannot be used:\n" if len(faults) > 1 else ""
        raise ConfigError(head + "\n".join(faults))
