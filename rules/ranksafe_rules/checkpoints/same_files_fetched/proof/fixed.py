"""Rank 0 downloads, and rank 1 looks when it is done.

The server is slow on purpose: it tells when it has sent the first half, and waits before it sends the rest.

runs-on: cpu-ranks
ranks: 2
expect: output rank 1 has read everything
"""

import http.server
import os
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import torch.distributed as dist

SIZE = 2_000_000


class SlowServer(http.server.BaseHTTPRequestHandler):
    sent_half = None

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(SIZE))
        self.end_headers()
        self.wfile.write(b"x" * (SIZE // 2))
        self.sent_half()
        time.sleep(3)
        self.wfile.write(b"x" * (SIZE // 2))

    def log_message(self, *arguments: object) -> None:
        pass


def read_all(path: Path) -> None:
    size = len(path.read_bytes())
    if size != SIZE:
        raise EOFError(f"the file ends after {size} of {SIZE} bytes")


def start_server() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), SlowServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/data.bin"


def main() -> None:
    dist.init_process_group("gloo")
    shared = [start_server(), tempfile.mkdtemp()]
    dist.broadcast_object_list(shared, src=0)
    store = dist.distributed_c10d._get_default_store()
    SlowServer.sent_half = lambda _: store.set("half", "sent")
    data = Path(shared[1]) / "data.bin"
    if dist.get_rank() == 0:
        if not os.path.exists(data):
            urllib.request.urlretrieve(shared[0], data)
    dist.barrier()
    read_all(data)
    print(f"rank {dist.get_rank()} has read everything")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
