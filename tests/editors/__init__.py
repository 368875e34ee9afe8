"""The pages for editors, the registry's entry, the wheel, and an editor that starts the agent from it."""
