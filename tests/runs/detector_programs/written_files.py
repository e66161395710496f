"""Every rank writes the same files, or one rank does and the others write their own."""

import logging
import sys
from pathlib import Path

import torch
import torch.distributed as dist

kind, folder = sys.argv[1], Path(sys.argv[2])
dist.init_process_group("gloo")
rank = dist.get_rank()
folder.mkdir(exist_ok=True)
if kind == "wrong":
    (folder / "result.json").write_text("{}")  # text
    torch.save({"rank": rank}, folder / "model.pt")  # checkpoint
elif rank == 0:
    (folder / "result.json").write_text("{}")
    torch.save({"rank": rank}, folder / "model.pt")
(folder / f"log-{rank}.txt").write_text("started")
installed = folder / f"site-packages-{rank}" / "site-packages" / "hydra"
installed.mkdir(parents=True)
(installed / "__init__.py").write_text("def save(path): open(path, 'w').write('seed: 1')")
sys.path.insert(0, str(installed.parent))
import hydra  # noqa: E402 - it writes what hydra 1.3.2 writes, in installed code of its name

hydra.save(folder / "config.yaml")
logging.FileHandler(folder / "train.log", mode="w").close()
with (folder / "shared.log").open("a") as log:
    print(rank, file=log)
dist.barrier()
dist.destroy_process_group()
