"""Completions for the rollouts of environments."""


def generate_rollout_completions(generation, prompts, **generation_kwargs):
    """Completions of the prompts of this process."""
    if not prompts:
        return []
    output = generation.vllm_client.generate(prompts, **generation_kwargs)
    return output
