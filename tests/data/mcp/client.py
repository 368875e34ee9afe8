"""A client that opens a session with MCP servers and then does nothing: `client.py CWD SERVERS_JSON`.

Prints the agent's process id when the session is there. For tests that kill it.
"""

import json
import subprocess
import sys

cwd, servers = sys.argv[1:]
agent = subprocess.Popen([sys.executable, "-m", "acp_server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def call(number, method, params):
    line = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    agent.stdin.write(line.encode() + b"\n")
    agent.stdin.flush()
    while json.loads(agent.stdout.readline()).get("id") != number:
        pass


call(0, "initialize", {"protocolVersion": 1, "clientCapabilities": {}})
call(1, "session/new", {"cwd": cwd, "mcpServers": json.loads(servers)})
print(agent.pid, flush=True)
for line in agent.stdout:
    pass
