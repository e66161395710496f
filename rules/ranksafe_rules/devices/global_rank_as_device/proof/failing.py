r"""Two processes play two machines with one GPU each: the second one asks for a GPU that it does not have.

runs-on: cpu-ranks
ranks: 2
expect: output GPUs asked for: \[0, 1\], of 1 on each machine
"""

import torch
import torch.distributed as dist

GPUS_OF_A_MACHINE = 1


def main() -> None:
    dist.init_process_group("gloo")
    device = torch.device("cuda", dist.get_rank())
    num_nodes = dist.get_world_size() // GPUS_OF_A_MACHINE
    asked = [torch.zeros(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(asked, torch.tensor([device.index]))
    if dist.get_rank() == 0:
        numbers = [int(number) for number in asked]
        print(f"GPUs asked for: {numbers}, of {GPUS_OF_A_MACHINE} on each machine")
        print(f"{num_nodes} machines")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
