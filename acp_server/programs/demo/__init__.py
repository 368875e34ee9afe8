"""The demonstration: a story over real files, a client that plays it against the real server, a report.

Knows the server only from outside, as an editor does.
"""
