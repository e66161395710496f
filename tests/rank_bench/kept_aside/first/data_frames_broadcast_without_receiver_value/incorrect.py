"""Loads two tables on rank zero and broadcasts them under names that the others never bind.

source: https://github.com/horovod/horovod/issues/248
bug: RS409
ranks: 2
expect: RS409
line: tables = [df_train, df_test]
decidable: yes
shows: error UnboundLocalError
"""

import argparse
import os
import tempfile
from datetime import timedelta

import numpy as np
import torch.distributed as dist


def write_csv(path, rows):
    np.savetxt(path, np.random.default_rng(rows).normal(size=(rows, 3)), delimiter=",")
    return path


def load(train_path, test_path):
    # broadcast df_train and df_test from rank 0 to other ranks
    if dist.get_rank() == 0:
        print("Loading data...")
        df_train = np.loadtxt(train_path, delimiter=",").astype("float32")
        df_test = np.loadtxt(test_path, delimiter=",").astype("float32")
        print("done")
    tables = [df_train, df_test]
    dist.broadcast_object_list(tables, src=0)
    return tables


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=12)
    args = parser.parse_args()
    timeout = timedelta(seconds=float(os.environ.get("RANK_BENCH_TIMEOUT", "5")))
    dist.init_process_group("gloo", timeout=timeout)
    folder = tempfile.mkdtemp()
    train_path = write_csv(os.path.join(folder, "train.csv"), args.rows)
    test_path = write_csv(os.path.join(folder, "test.csv"), args.rows // 3)
    df_train, df_test = load(train_path, test_path)
    print(dist.get_rank(), df_train.shape, df_test.shape)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
