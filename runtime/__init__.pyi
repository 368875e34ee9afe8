from runtime.agent import Agent as Agent
from runtime.agent import Answer as Answer
from runtime.agent import FunctionTool as FunctionTool
