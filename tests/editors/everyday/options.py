import argparse


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--output", default="checkpoint.pt")
    return parser.parse_args()
