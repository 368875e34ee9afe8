from runtime.agent import Agent as Agent
from runtime.agent import Answer as Answer
from runtime.agent import FunctionTool as FunctionTool
from runtime.asyncio_agent import AsyncioAgent as AsyncioAgent
from runtime.bridge import TrioThread as TrioThread
from runtime.bridge import on_loop as on_loop
