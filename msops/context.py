"""MindSpore's ``context`` namespace: execution mode and device."""

from msops._context import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context
from msops._names import missing_names

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", "get_context", "set_context"]

__getattr__ = missing_names(__name__)
