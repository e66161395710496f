"""Which refusals and stand-ins an exception that ends a program touches: by its lines and by the objects it holds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

INJECTED = Path(__file__).parents[2] / "server" / "ranksafe" / "rehearsal" / "inject"
LIBRARY = """
import functools, urllib.request
from ranksafe_rehearsal import journal, lookups, provenance

def load(name):
    try:
        return urllib.request.urlopen('http://192.0.2.1/' + name)
    except OSError:
        return Rows(name)

@functools.lru_cache
def kept(name):
    return Rows(name)

def train(batches, path):
    journal.modified("epochs are cut", "epochs are cut", kind="short-epoch")
    open(path, "w").close()

def batches(number):
    for index in range(number):
        if index == 4:
            journal.modified("epochs are cut", "epochs are cut", kind="short-epoch")
        yield [index]

class Rows(list):
    def __init__(self, name):
        super().__init__([{"text": "a"}] * 4)
        journal.modified(f"dataset {name}", name, object="dataset", name=name)
        provenance.made(self, "dataset")

    def map(self, function):
        return [function(row) for row in self]

class Model:
    def __init__(self):
        journal.modified("model bert", "bert", object="model", name="bert")
        provenance.made(self, "model")

class Row(dict):
    def __getitem__(self, key):
        return super().__getitem__(key)

lookups.recognise(lambda thing, key: isinstance(thing, dict) and "text" in thing and key == "nowhere")

class Trainer:
    def __init__(self, rows):
        self.rows = rows

    def fit(self, step):
        for row in self.rows:
            step(row)
"""
"""Installed code that hands out a stand-in, as ranksafe_rehearsal makes libraries do."""
PREAMBLE = """
from ranksafe_rehearsal import activation
activation.start()
import urllib.request
from library import Model, Row, Rows, Trainer, kept, load
"""

Touched = Callable[..., list[tuple[str, str]]]


@pytest.fixture
def touched(tmp_path: Path) -> Touched:
    """Run a program that fails; its exception's entries as (kind, source of the line that met it).

    ``target``: the folder of installed code.
    """

    def run(code: str, target: str = "site-packages") -> list[tuple[str, str]]:
        directory = tmp_path / "run"
        installed = tmp_path / target
        for folder in (directory, installed / "library-1.0.dist-info"):
            folder.mkdir(parents=True, exist_ok=True)
        (installed / "library.py").write_text(LIBRARY)
        facts = {
            "run_directory": str(directory),
            "devices": 2,
            "device_name": "any",
            "capability": [8, 0],
            "multi_processor_count": 1,
            "memory_bytes": 1,
            "offline": True,
            "native": {"devices": ""},
        }
        settings = directory / "rehearsal.json"
        settings.write_text(json.dumps(facts))
        script = tmp_path / "script.py"
        script.write_text(PREAMBLE + code)
        path = os.pathsep.join([str(INJECTED), str(installed)])
        done = subprocess.run(
            [sys.executable, "-S", str(script)],
            env={"RANKSAFE_REHEARSAL": str(settings), "PYTHONPATH": path},
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 1, done.stderr
        events = [
            json.loads(line)
            for file in directory.glob("rehearsal-[0-9]*.jsonl")
            for line in file.read_text().splitlines()
        ]
        assert [each for each in events if each["event"] == "agent-problem"] == []
        (uncaught,) = [each for each in events if each["event"] == "uncaught"]
        lines = script.read_text().splitlines()
        return [
            (each["kind"], lines[each["places"][0]["line"] - 1].strip())
            for each in uncaught["touches"]
        ]

    return run


_ASKED = "return urllib.request.urlopen('http://192.0.2.1/data.txt').read()"
_TOUCHING = {
    "a refused download that became None": (
        f"""
def download():
    try:
        {_ASKED}
    except OSError:
        return None
text = download()
words = text.split()
""",
        [("network", _ASKED)],
    ),
    "a column that the real one may have": (
        """
rows = Rows('imdb')
row = rows[0]
print(row['title'])
""",
        [("dataset", "rows = Rows('imdb')")],
    ),
    "a refusal that led to a key that is nowhere": (
        """
row = Rows('imdb')[0]
try:
    urllib.request.urlopen('http://192.0.2.1/')
    key = 'text'
except OSError:
    key = 'nowhere'
if key == 'nowhere':
    print(row['nowhere'])
""",
        [("network", "urllib.request.urlopen('http://192.0.2.1/')")],
    ),
    "a file that a refused download did not write": (
        """
import sys
try:
    urllib.request.urlretrieve('http://192.0.2.1/', 'input.txt')
except OSError as error:
    print('later', error)
with open('input.txt') as file:
    print(file.read())
""",
        [("network", "urllib.request.urlretrieve('http://192.0.2.1/', 'input.txt')")],
    ),
    "the size of a terminal that is not there": (
        """
import os
height, width = os.popen('stty size', 'r').read().split()
""",
        [("terminal", "height, width = os.popen('stty size', 'r').read().split()")],
    ),
    "a program that is simulated": (
        """
import subprocess
def memory():
    text = subprocess.run(['nvidia-smi', '--query-remapped-rows=x'], capture_output=True, text=True).stdout
    return int(text.split()[0])
memory()
""",
        [
            (
                "library",
                "text = subprocess.run(['nvidia-smi', '--query-remapped-rows=x'], capture_output=True, text=True).stdout",
            )
        ],
    ),
    "a module that is simulated": (
        """
import pynvml
pynvml.nvmlDeviceGetFanSpeeds(0)
""",
        [("library", "import pynvml")],
    ),
    "a checkpoint whose step the rehearsal has changed": (
        """
import os
from library import train
os.mkdir('out')
train(0, 'out/epoch=0-step=8.ckpt')
open('out/epoch=0-step=100.ckpt')
""",
        [("short-epoch", "train(0, 'out/epoch=0-step=8.ckpt')")],
    ),
    "a count that a short epoch has changed": (
        """
from library import batches
seen = 0
for batch in batches(9):
    seen += len(batch)
assert seen == 860
""",
        [("short-epoch", "for batch in batches(9):")],
    ),
    "an exit in the handler of a refusal": (
        """
import sys
try:
    urllib.request.urlopen('http://192.0.2.1/')
except OSError as error:
    print(error)
    sys.exit(1)
""",
        [("network", "urllib.request.urlopen('http://192.0.2.1/')")],
    ),
    "an exit for want of data": (
        """
import sys
def main(rows):
    if len(rows) < 100:
        sys.exit('too little data')
rows = Rows('imdb')
main(rows)
""",
        [("dataset", "rows = Rows('imdb')")],
    ),
    "what the handler of a refusal chose": (
        """
try:
    urllib.request.urlopen('http://192.0.2.1/')
    sizes = {'vocabulary': 5}
except OSError:
    sizes = {}
print(sizes['vocabulary'])
""",
        [("network", "urllib.request.urlopen('http://192.0.2.1/')")],
    ),
    "a column of a stand-in, in a function that a library calls": (
        """
rows = Rows('imdb')
def tokenize(example):
    return example['sentence'].split()
rows.map(tokenize)
""",
        [("dataset", "rows = Rows('imdb')")],
    ),
    "a number derived from a stand-in, in a callee": (
        """
def share(count, total):
    return total // count
def main():
    rows = Rows('imdb')
    batches = len(rows) // 32
    share(batches, 10)
main()
""",
        [("dataset", "rows = Rows('imdb')")],
    ),
    "a stand-in that an object of the library holds": (
        """
def trainer_for(name):
    return Trainer(Rows(name))
class Training:
    def setup(self):
        self.trainer = trainer_for('imdb')
    def step(self, row):
        self.seen = row['label']
training = Training()
training.setup()
training.trainer.fit(training.step)
""",
        [("dataset", "return Trainer(Rows(name))")],
    ),
    "what a function made of the stand-in that it was given": (
        """
def lengths(rows, rate):
    found = []
    for row in rows:
        found.append(len(row))
    return found
rows = Rows('imdb')
sizes = lengths(rows, rate=1)
print(sizes[100])
""",
        [("dataset", "rows = Rows('imdb')")],
    ),
    "a stand-in that was loaded at another line": (
        """
def prepare(name):
    return kept(name)
prepare('imdb')
rows = kept('imdb')
print(rows[100])
""",
        [("dataset", "return kept(name)")],
    ),
    "a stand-in for what was refused": (
        """
print(load('imdb')[100])
""",
        [("dataset", "print(load('imdb')[100])")],
    ),
    "a check of the script's own": (
        """
rows = Rows('imdb')
if len(rows) < 1000:
    raise ValueError('too little data')
""",
        [("dataset", "rows = Rows('imdb')")],
    ),
    "an exception raised from another": (
        """
def load():
    return [row['label'] for row in Rows('imdb')]
try:
    load()
except KeyError as error:
    raise RuntimeError('no labels') from error
""",
        [("dataset", "return [row['label'] for row in Rows('imdb')]")],
    ),
}
_NOT_TOUCHING = {
    "a question that is answered as by the real program": """
import subprocess
def memory():
    command = 'nvidia-smi --query-gpu=memory.total,name --format=csv,noheader | head -1'
    text = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
    return int(text)
memory()
""",
    "values that never met the stand-in": """
rows = Rows('imdb')
settings = {'rate': 1}
for row in rows:
    print(settings['rat'])
""",
    "a function that is handed something else": """
def look(table, rows):
    return table['missing']
rows = Rows('imdb')
look({}, rows)
""",
    "a refusal that was caught elsewhere": """
try:
    urllib.request.urlopen('http://192.0.2.1/')
except OSError:
    print('no news')
import json
numbers = json.loads('[1, 2]')
print(numbers[7])
""",
    "what a function made without the stand-in that it was given": """
def train(rows, rate):
    history = {'loss': []}
    for row in rows:
        print(rate, row)
    return history
rows = Rows('imdb')
history = train(rows, 1)
print(history['loss'][-1])
""",
    "an exit for another reason": """
import sys
rows = Rows('imdb')
if len(sys.argv) < 2:
    sys.exit(1)
""",
    "another call of a module that was handed the stand-in": """
import random
rows = Rows('imdb')
random.shuffle(rows)
print([][random.randrange(9)])
""",
    "a word that the stand-in was asked with": """
rows = Rows('train')
print({}['train'])
""",
    "a file that has nothing to do with the steps": """
from library import train
train(0, 'step-8.ckpt')
open('part-1.csv')
""",
    "a batch of a short epoch": """
from library import batches
for batch in batches(9):
    if batch[0] > 6:
        print(batch[1])
""",
    "a column that the real one has not, either": """
rows = Rows('imdb')
for row in rows:
    print(row['nowhere'])
""",
    "the same, asked by a library": """
rows = Rows('imdb')
def work(row):
    return Row(row)['nowhere']
rows.map(work)
""",
    "an attribute that no model of the class has": """
class Training:
    def __init__(self, rows):
        self.rows, self.model = rows, Model()
Training(Rows('imdb')).model.nowhere
""",
    "another attribute of the same object": """
class Training:
    def __init__(self):
        self.rows = Rows('imdb')
        self.names = {}
    def run(self):
        return self.names['first']
Training().run()
""",
}


@pytest.mark.parametrize("case", _TOUCHING)
def test_a_failure_touches_what_its_values_come_from(touched: Touched, case: str) -> None:
    code, expected = _TOUCHING[case]
    assert touched(code) == expected


@pytest.mark.parametrize("case", _NOT_TOUCHING)
def test_a_failure_does_not_touch_what_merely_is_there(touched: Touched, case: str) -> None:
    assert touched(_NOT_TOUCHING[case]) == []


def test_what_pip_put_into_a_folder_of_its_own_is_not_the_users(touched: Touched) -> None:
    code, expected = _TOUCHING["a column that the real one may have"]
    assert touched(code, "packages") == expected
