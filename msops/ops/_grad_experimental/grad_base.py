"""MindSpore's ``ops._grad_experimental.grad_base`` namespace."""

from msops._extension.graph.gradients import bprop_getters as bprop_getters
