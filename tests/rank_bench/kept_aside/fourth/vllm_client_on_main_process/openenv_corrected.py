"""Completions for the rollouts of environments."""

from accelerate.utils import broadcast_object_list, gather_object


def generate_rollout_completions(generation, prompts, **generation_kwargs):
    """Completions of the prompts of this process, which the main process asks for."""
    accelerator = generation.accelerator
    all_prompts = gather_object(prompts)
    payload = [None]
    if accelerator.is_main_process:
        payload = [generation.vllm_client.generate(all_prompts, **generation_kwargs)]
    broadcast_object_list(payload, from_process=0)
    start = accelerator.process_index * len(prompts)
    return payload[0][start : start + len(prompts)]
