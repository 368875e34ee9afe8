"""All sessions that are open over the gateway, and who has them open. Knows no protocol and no store."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio

from acp_server.gateway.guests import Guest
from acp_server.gateway.prompting import PROMPT
from acp_server.gateway.room import Room
from acp_server.gateway.room_client import Publish, RoomClient
from runtime.conversation import Conversation
from runtime.events import Event, UserMessage
from schemas.transcript import PromptStep

Parting = Callable[[Room], Awaitable[None]]
"""Sees to a session that nobody has open any more."""


class Hub:
    """Rooms by session. publish: hears of every event once. parting: runs when a room has emptied."""

    def __init__(self, nursery: trio.Nursery, publish: Publish, parting: Parting) -> None:
        self.nursery = nursery
        self._connections: set[Callable[[], None]] = set()
        self._publish = publish
        self._parting = parting
        self._rooms: dict[str, Room] = {}

    def room(self, session_id: str) -> Room:
        """The session's room, made when it is first asked for."""
        if session_id not in self._rooms:
            self._rooms[session_id] = Room(session_id, self._emptied)
        return self._rooms[session_id]

    async def catch_up(self, session_id: str, guest: Guest) -> None:
        """See `Room.catch_up`; nothing where there is no room."""
        if session_id in self._rooms:
            await self._rooms[session_id].catch_up(guest)

    def leave(self, session_id: str, guest: Guest) -> None:
        """See `Room.leave`."""
        if session_id in self._rooms:
            self._rooms[session_id].leave(guest)

    def turn_over(self, session_id: str, turn_id: str) -> None:
        """See `Room.turn_over`."""
        if session_id in self._rooms:
            self._rooms[session_id].turn_over(turn_id)

    def client(self, session_id: str) -> RoomClient:
        """Who is told what happens in a session."""
        return RoomClient(self.room(session_id), self._publish)

    async def deliver(self, session_id: str, event: Event) -> None:
        """Give an event to the connections that have the session open, and to nobody else."""
        room = self._rooms.get(session_id)
        if room is not None:
            await room.tell(event)

    def watch_prompts(self, talk: Conversation) -> None:
        """Tell each prompt of an open session, when its turn begins, to all but the one who sent it."""

        async def on_prompt(step: PromptStep) -> None:
            prompt, room, recorder = PROMPT.get(), self.room(talk.session_id), talk.notes.recorder
            turn_id = recorder.turn_id if recorder is not None else ""
            room.turn_begins(turn_id)
            if prompt is not None:
                prompt.turn_id = turn_id
            for block in step.blocks:
                event = UserMessage(step.message_id, block)
                self._publish(talk.session_id, event, turn_id)
                await room.tell(event, besides=None if prompt is None else prompt.guest)

        talk.notes.on_prompt = on_prompt

    @contextmanager
    def connected(self, stop: Callable[[], None]) -> Iterator[None]:
        """A connection is there meanwhile. stop: ends it, when all are to end."""
        self._connections.add(stop)
        try:
            yield
        finally:
            self._connections.discard(stop)

    def stop(self) -> None:
        """End all connections."""
        for stop in tuple(self._connections):
            stop()

    def forget(self, room: Room) -> None:
        """Its session was closed and nobody is there, or waits to come in."""
        waiting = room.opening.statistics().tasks_waiting
        if room.empty and not waiting and self._rooms.get(room.session_id) is room:
            del self._rooms[room.session_id]

    def _emptied(self, room: Room) -> None:
        self.nursery.start_soon(self._parting, room)
