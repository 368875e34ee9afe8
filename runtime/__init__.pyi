from runtime.embed.agent import Agent as Agent
from runtime.embed.agent import Answer as Answer
from runtime.embed.agent import FunctionTool as FunctionTool
from runtime.embed.asyncio_agent import AsyncioAgent as AsyncioAgent
from runtime.embed.trio_thread import TrioThread as TrioThread
from runtime.embed.trio_thread import on_loop as on_loop
