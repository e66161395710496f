"""Rank 0 does something slow for so many seconds while rank 1 waits for it; then both go on and end well.

Arguments: what, seconds.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset


def compute(end):
    while time.time() < end:
        sum(range(100_000))


def long_calls_in_cpp(end):
    matrix = torch.randn(4000, 4000)
    while time.time() < end:
        matrix @ matrix


def write_a_large_checkpoint(end):
    folder = pathlib.Path(tempfile.mkdtemp())
    state = {"weights": torch.zeros(20_000_000)}
    try:
        while time.time() < end:
            torch.save(state, folder / "checkpoint.pt")
            with open(folder / "checkpoint.pt", "rb+") as file:
                os.fsync(file.fileno())
    finally:
        shutil.rmtree(folder)


def wait_for_a_compiler(end):
    busy = "import time, sys\nwhile time.time() < float(sys.argv[1]): sum(range(100_000))"
    subprocess.run([sys.executable, "-c", busy, str(end)], check=True)


def wait_for_a_thread(end):
    worker = threading.Thread(target=compute, args=(end,))
    worker.start()
    worker.join()


class Samples(Dataset):
    def __init__(self, end):
        self.end = end

    def __len__(self):
        return 2

    def __getitem__(self, index):
        compute(self.end)
        return index


def wait_for_the_first_batch(end):
    next(iter(DataLoader(Samples(end), num_workers=1)))


def download(end):
    """From a server of our own that sends a few bytes now and then."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        while time.time() < end:
            connection.sendall(b"x" * 100)
            time.sleep(0.7)
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    with socket.create_connection(server.getsockname()) as client:
        while client.recv(65536):
            pass


def wait_for_a_download_to_begin(end):
    """A server that says nothing for a while."""
    import urllib.request

    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = server.accept()
        connection.recv(65536)
        time.sleep(max(0.0, end - time.time()))
        connection.sendall(b"HTTP/1.0 200 OK\r\n\r\ndone")
        connection.close()

    threading.Thread(target=serve, daemon=True).start()
    port = server.getsockname()[1]
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=300) as answer:
        assert answer.read() == b"done"


def look_for_a_file_again_and_again(end):
    while time.time() < end:
        time.sleep(0.5)


WAYS = {
    way.__name__: way
    for way in (
        compute, long_calls_in_cpp, write_a_large_checkpoint, wait_for_a_compiler, wait_for_a_thread,
        wait_for_the_first_batch, download, wait_for_a_download_to_begin, look_for_a_file_again_and_again,
    )
}  # fmt: skip


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    dist.barrier()
    if dist.get_rank() == 0:
        WAYS[sys.argv[1]](time.time() + float(sys.argv[2]))
    dist.barrier()
    print("done", flush=True)
    dist.destroy_process_group()
