"""MindSpore's ``context`` namespace: execution mode and device."""

from msops._base.missing_names import missing_names
from msops._face.context import GRAPH_MODE, PYNATIVE_MODE, get_context, set_context

__all__ = ["GRAPH_MODE", "PYNATIVE_MODE", "get_context", "set_context"]

__getattr__ = missing_names(__name__)
