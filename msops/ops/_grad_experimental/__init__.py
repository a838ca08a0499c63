"""MindSpore's ``ops._grad_experimental`` namespace: gradients of graph operators."""
