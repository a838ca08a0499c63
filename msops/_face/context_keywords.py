"""Keywords of MindSpore's context that mean nothing here, grouped by why.

They steer MindSpore's own compiler, memory pool and devices. A script sets them for speed or for
dumps; its results do not depend on them. So they are accepted, `get_context` gives them back, and
one debug line in the log says that they do nothing.

Source: MindSpore 2.7.2, ``mindspore/context.py`` and its ``ms_ctx_param``.
"""

from __future__ import annotations

_BY_REASON = {
    "XLA compiles the graph": """
        debug_level enable_auto_mixed_precision enable_begin_end_inline_opt
        enable_concat_eliminate_opt enable_fused_cast_add_opt enable_sparse enable_task_opt
        exec_order jit_config jit_enable_inplace_ops jit_level jit_syntax_level max_call_depth
        precompile_only print_file_path reserve_class_name_in_scope support_binary topo_order""",
    "XLA always fuses": "enable_graph_kernel graph_kernel_flags",
    "XLA keeps what it compiled: see JAX's jax_compilation_cache_dir": """
        compile_cache_path enable_compile_cache load_compile_cache save_compile_cache""",
    "dumps are XLA's: see XLA_FLAGS=--xla_dump_to": "save_graphs save_graphs_path",
    "profiles are JAX's: see jax.profiler": "enable_profiling env_config_path profiling_options",
    "JAX owns the memory of devices": """
        max_device_memory memory_optimize_level memory_offload mempool_block_size
        variable_memory_max_size""",
    "XLA owns the threads": """
        enable_debug_runtime host_scheduling_max_threshold inter_op_parallel_num
        runtime_num_threads""",
    "there is no Ascend": """
        aoe_config aoe_job_type aoe_tune_mode ascend_config atomic_clean_policy bias_add_comm_swap
        conv_allow_hf32 cur_step_num disable_format_transform enable_flash_attention_load_balance
        enable_reduce_precision ge_options hccl_watchdog infer_boost jit_compile
        last_triggered_step matmul_allow_hf32 need_ckpt op_debug_option op_precision_mode op_timeout
        precision_mode save_checkpoint_steps""",
    "XLA chooses algorithms of cuDNN and cuBLAS: see XLA_FLAGS": """
        conv_allow_tf32 conv_dgrad_algo conv_fprop_algo conv_wgrad_algo deterministic gpu_config
        matmul_allow_tf32""",
    "XLA schedules communication": """
        compute_communicate_fusion_level dataset_broadcast_opt_level
        enable_allreduce_slice_to_reducescatter enable_grad_comm_opt
        enable_interleave_parallel_branch enable_interleave_split_concat_branch
        enable_offloading_packed_experts enable_opt_shard_comm_opt enable_parallel_split
        interleaved_layernorm_comm interleaved_matmul_comm matmul_grad_comm_overlap pp_1f1b_overlap
        recompute_allgather_overlap_fagrad recompute_comm_overlap""",
    "msops always checks what a bprop returns": "check_bprop",
    "an error of a kernel is raised where it is called": "pynative_synchronize",
    "gradients are taken of Tensors": "grad_for_scalar",
}

WITHOUT_EFFECT = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}
"""Why each keyword does nothing."""

_PARALLEL_NAMES = """
    all_reduce_fusion_config auto_parallel_search_mode comm_fusion dataset_strategy device_num
    enable_alltoall enable_parallel_optimizer force_fp32_communication full_batch global_rank
    gradient_fp32_sync gradients_mean parallel_mode parallel_optimizer_config parameter_broadcast
    pipeline_config pipeline_result_broadcast pipeline_segments pipeline_stages search_mode
    strategy_ckpt_config strategy_ckpt_load_file strategy_ckpt_save_file"""

PARALLEL = frozenset(_PARALLEL_NAMES.split())
"""The keywords of ``set_auto_parallel_context``."""
