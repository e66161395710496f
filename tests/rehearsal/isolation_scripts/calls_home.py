"""Tries to reach the outside in the usual ways."""

import contextlib
import socket
import urllib.request

for url in ("http://192.0.2.1/", "https://[2001:db8::1]/", "https://huggingface.co/api/models"):
    with contextlib.suppress(OSError):
        urllib.request.urlopen(url, timeout=5)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams, contextlib.suppress(OSError):
    datagrams.sendto(b"metrics", ("198.51.100.1", 8125))
