python -m torch.distributed.launch --nproc_per_node=2 train.py --epochs 20
