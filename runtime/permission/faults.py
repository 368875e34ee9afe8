"""What can be wrong with a rule. Knows nothing else."""


class RuleError(ValueError):
    """A rule that cannot be used; the text is a clause about it: `must begin with a tool's name`."""
