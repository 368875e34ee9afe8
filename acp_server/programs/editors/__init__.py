"""A page for each editor, and the entry for the registry of ACP agents. Data, and how it is read."""
