"""Scripted JSON-RPC talks with any ACP agent: parse, match, play, report. Knows nothing of our own agent."""
