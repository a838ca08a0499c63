"""Helpers of every package: settings, dtypes, logging, paths. They know neither ops nor kernels.

May import: nothing else of msops.
Modules: building, collector, config, dtypes, explanation, extremes, host_memory, kernel_errors,
logging, missing_names, paths, processor, temporary, version.
"""
