"""A package that the script needs is not installed; every rank stops at the import.

fault: import error
outcome: failed
rank: any
kind: exception
line: import a_package_that_nobody_has
"""

import torch.distributed as dist


def main():
    import a_package_that_nobody_has

    dist.init_process_group("gloo")
    a_package_that_nobody_has.train()


if __name__ == "__main__":
    main()
