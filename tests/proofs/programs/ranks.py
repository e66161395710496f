"""The CPU ranks are one process group under accelerate.

runs-on: cpu-ranks
ranks: 2
expect: output ^rank 0 of 2 MULTI_CPU$
expect: output ^rank 1 of 2 MULTI_CPU$
"""

from accelerate import Accelerator


def main() -> None:
    accelerator = Accelerator()
    accelerator.wait_for_everyone()
    kind = accelerator.distributed_type.value
    print(
        f"rank {accelerator.process_index} of {accelerator.num_processes} {kind}\n",
        end="",
        flush=True,
    )
    accelerator.end_training()


if __name__ == "__main__":
    main()
