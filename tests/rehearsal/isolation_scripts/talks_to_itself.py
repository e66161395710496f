"""What processes of one machine use between them: loopback, sockets in files, shared memory, semaphores, terminals."""

import multiprocessing
import os
import pty
import socket
import tempfile
from multiprocessing import shared_memory

for host in ("127.0.0.1", "localhost", socket.gethostname()):
    with (
        socket.create_server((host, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        client.sendall(b"hello")
        with server.accept()[0] as connection:
            heard = connection.recv(5).decode()
with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as server:
    server.bind(f"{folder}/socket")
    server.listen()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(f"{folder}/socket")
with multiprocessing.Manager() as manager:
    shared = manager.list([1])
    shared.append(2)
    assert list(shared) == [1, 2]
block = shared_memory.SharedMemory(create=True, size=1 << 20)
block.buf[:3] = b"abc"
block.close()
block.unlink()
semaphore = multiprocessing.get_context("spawn").Semaphore(1)
assert semaphore.acquire(timeout=1)
terminal, _ = pty.openpty()
assert os.isatty(terminal)
print("heard", heard)
