"""The gateway's part of the settings file: its keys, their types and bounds. Knows no default."""

from typing import TypedDict

from schemas.config_values import Count, HostName, Line, MessageBytes, Port, Positive, WebOrigin


class GatewaySection(TypedDict, total=False):
    """[gateway]: where `wholeturn gateway` listens, who may come, and how much of it.

    allowed_hosts: names it is reached by beside its own address. allowed_origins: of pages beside its own.
    max_message_bytes: of one WebSocket message. detached_turn_seconds: how long a turn goes on when the last
    client of its session has gone.
    """

    host: Line
    port: Port
    tls_cert: Line
    tls_key: Line
    allowed_hosts: list[HostName]
    allowed_origins: list[WebOrigin]
    max_connections: Positive
    max_message_bytes: MessageBytes
    requests_per_second: Positive
    detached_turn_seconds: Count
