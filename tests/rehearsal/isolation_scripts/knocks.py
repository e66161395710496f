"""Connects to every address it is given and prints what came of it."""

import json
import socket
import sys

answers = {}
for name, address in json.loads(sys.argv[1]).items():
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(5)
        try:
            client.connect(address if isinstance(address, str) else tuple(address))
            answers[name] = "connected"
        except OSError as error:
            answers[name] = str(error)
print(json.dumps(answers))
