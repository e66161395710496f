"""``--shrink work``: large pictures become small where a library's model takes them, and nobody else sees a difference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Rehearse
from .public_scripts.published import fetched, installed, scripts
from .public_scripts.published import rehearse as rehearse_published

_NETS = """
from torch import nn

seen = []

class Eyes(nn.Module):
    def forward(self, pictures):
        if pictures.device.type != "meta":
            seen.append(tuple(pictures.shape))
        return pictures

class Maps(nn.Sequential):
    def __init__(self, halvings=5):
        layers = [Eyes()]
        for number in range(halvings):
            layers += [nn.Conv2d(4 if number else 3, 4, 3, 2, 1), nn.BatchNorm2d(4), nn.ReLU()]
        super().__init__(*layers)

class Classifier(nn.Sequential):
    def __init__(self, halvings=5):
        super().__init__(Maps(halvings), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(4, 10))

class OfOneSize(nn.Sequential):
    def __init__(self):
        super().__init__(Eyes(), nn.Flatten(), nn.Linear(3 * 224 * 224, 10))
"""
"""Models as torchvision and timm have them."""
_PROGRAM = """
import json, sys
sys.path.insert(0, sys.argv[1])
import torch
from timm.nets import Classifier, Maps, OfOneSize, seen

class Own(Classifier):
    pass

def sides(model, side=224, count=2):
    seen.clear()
    pictures = torch.randn(count, 3, side, side, device="cuda", requires_grad=True)
    model(pictures).sum().backward()
    assert pictures.grad.shape == pictures.shape
    assert sum(shape[0] for shape in seen) == count
    return sorted({shape[-1] for shape in seen})

watched = Classifier().cuda()
watched[0].register_forward_hook(lambda *_: None)
headed = Classifier().cuda()
headed[4] = type("Head", (torch.nn.Linear,), {})(4, 10).cuda()
told = {
    "classifier": sides(Classifier().cuda()),
    "replicas": sides(torch.nn.DataParallel(Classifier().cuda())),
    "a deep one": sides(Classifier(7).cuda()),
    "a deep one that is asked": sides(Classifier(7).cuda().eval()),
    "in a model of the script": sides(torch.nn.Sequential(torch.nn.Identity(), Classifier()).cuda()),
    "small pictures": sides(Classifier().cuda(), 32),
    "of one size": sides(OfOneSize().cuda()),
    "maps": sides(Maps().cuda()),
    "the script's": sides(Own().cuda()),
    "watched": sides(watched),
    "with a head of the script": sides(headed),
}
model, pictures = Classifier().cuda(), torch.zeros(2, 3, 224, 224, device="cuda")
before = torch.get_rng_state()
model(pictures)
told["random numbers"] = bool((torch.get_rng_state() == before).all())
print(json.dumps(told))
"""


@pytest.mark.torch
def test_pictures_are_cut_where_the_models_answer_has_the_same_shape(
    rehearse: Rehearse, tmp_path: Path
) -> None:
    (tmp_path / "timm").mkdir()
    (tmp_path / "timm" / "__init__.py").touch()
    (tmp_path / "timm" / "nets.py").write_text(_NETS, encoding="utf-8")
    done = rehearse(_PROGRAM, str(tmp_path), shrink="work")
    assert done.returncode == 0, done.stderr
    assert not done.events("agent-problem")
    assert json.loads(done.lines[-1]) == {
        "classifier": [64],
        "replicas": [64],
        "a deep one": [224],
        "a deep one that is asked": [64],
        "in a model of the script": [64],
        "small pictures": [32],
        "of one size": [224],
        "maps": [224],
        "the script's": [224],
        "watched": [224],
        "with a head of the script": [224],
        "random numbers": True,
    }
    assert [event["message"]["en"] for event in done.events("modified")] == [
        "pictures of 224 × 224 are cut to 64 × 64 for Classifier"
    ]
    whole = rehearse(_PROGRAM, str(tmp_path), shrink="on")
    assert json.loads(whole.lines[-1])["classifier"] == [224]


@pytest.mark.long
@pytest.mark.torch
def test_a_public_models_training_passes_with_less_work(torch_python: Path) -> None:
    script = next(script for script in scripts() if script.name == "timm-finetune")
    path = fetched(script, torch_python)
    done = rehearse_published(
        script, path, torch_python, installed(torch_python), options=("--shrink", "work")
    )
    assert done.outcome == "succeeded", done.stderr
    assert done.result is not None
    assert "pictures of 224 × 224 are cut to 64 × 64 for ResNet" in done.result["modified"]
