"""One of two ranks fails; its exception and line are found.

runs-on: cpu-ranks
ranks: 2
expect: exception ValueError: nothing to do on rank 1
frame: raise ValueError(f"nothing to do on rank {accelerator.process_index}")
"""

from accelerate import Accelerator


def main() -> None:
    accelerator = Accelerator()
    if accelerator.process_index == 1:
        raise ValueError(f"nothing to do on rank {accelerator.process_index}")
    accelerator.wait_for_everyone()


if __name__ == "__main__":
    main()
