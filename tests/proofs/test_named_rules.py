"""The failure that a proof declares names the rule that it proves, and so does the one that a run of it has."""

from __future__ import annotations

from pathlib import Path

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.localization import Translated
from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Failure, Frame, Outcome, RunRequest, RunResult
from ranksafe.runs.predicted import with_predicted_rule
from ranksafe.runs.proofs.environment import overlay_for
from ranksafe.runs.proofs.execution import substitute
from ranksafe.runs.proofs.header import ExpectedException, Launch, RunsOn, read_header
from ranksafe.runs.start import start_run

GOES_ON = {
    "Timed out waiting 5000ms for": " recv operation to complete",
    "Detected mismatch between collectives on ranks.": (
        " Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=ALLGATHER, TensorShape=[3]), "
        "but Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=1, OpType=ALLGATHER, TensorShape=[4])."
    ),
    "Duplicate GPU detected": " : rank 1 and rank 0 both on CUDA device 1a0",
    "You can't train a model that has been loaded": (
        " in 8-bit or 4-bit precision on a different device than the one you're training on."
    ),
    "Error(s) in loading state_dict for Linear": (
        ':\n\tMissing key(s) in state_dict: "weight". \n\tUnexpected key(s) in state_dict: "module.weight".'
    ),
}
"""How the libraries' messages go on of which a header declares the beginning."""
BEGINS = {"terminated with exit code 1": "process 0 "}
"""How such messages begin of which it declares the end."""
UNNAMED = {
    "RS511": "an attribute is missing: the message is that of any typing error",
    "RS605": "the program's own message",
    "RS606": "a file is missing: the message is that of any wrong path",
}
"""Failures that do not name their rule, and why: a rule in the same file would be claimed for others, too."""
DECLARED = [
    folder
    for folder in Registry.load(entry_points=False).rules
    if folder.has_proof
    and isinstance(read_header(folder.failing_proof).expectations[0], ExpectedException)
]


def named(folder: RuleFolder) -> str | None:
    """The rule that the first failure of a run of the failing program names."""
    program = folder.failing_proof
    header = read_header(program)
    expected = header.expectations[0]
    assert isinstance(expected, ExpectedException)
    assert header.frame is not None
    lines = [line.strip() for line in program.read_text(encoding="utf-8").splitlines()]
    line = len(lines) - lines[::-1].index(header.frame)
    message = BEGINS.get(expected.text, "") + expected.text + GOES_ON.get(expected.text, "")
    raised = Raised(expected.type.rsplit(".", 1)[-1], message, (Frame(str(program), line, "main"),))
    evidence = Evidence({0: RankEvidence(0, raised=raised)}, returncode=1)
    failures, _ = explain(evidence, UserCode([program.parent], program.parent))
    launcher = "python" if header.runs_on is RunsOn.EMULATED_DP else None
    return with_predicted_rule(failures[0], header.ranks, launcher).code


OF_DETECTORS = [
    ("different-splits", "random_choices.py", "train, held_out = ", "RS315"),
    ("same-file-written", "written_files.py", "torch.save(", "RS602"),
    # It has a finding three lines above: other causes are as likely.
    ("different-splits", "random_choices.py", "sampler.set_epoch(", None),
]
"""What detectors see in such a line of their programs, and the rule that has a finding there."""


@pytest.mark.parametrize(("kind", "program", "begins", "code"), OF_DETECTORS)
def test_what_a_detector_saw_names_its_rule(
    kind: str, program: str, begins: str, code: str | None
) -> None:
    path = Path(__file__).parents[1] / "runs" / "detector_programs" / program
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(n for n, text in enumerate(lines, 1) if text.strip().startswith(begins))
    frame = Frame(str(path), line, "main", in_user_code=True)
    failure = Failure(kind=kind, message="", explanation=Translated("", ""), frames=(frame,)).at(
        frame
    )
    assert with_predicted_rule(failure, 2).code == code


def failed(folder: RuleFolder, python: Path) -> RunResult:
    """The failing program, run on CPU ranks or rehearsed, as its header says."""
    header = read_header(folder.failing_proof)
    overlay = overlay_for(header.requirements, python, lambda text: None)
    is_run = header.runs_on in (RunsOn.CPU_RANKS, RunsOn.JAX_HOST)
    launched = header.runs_on is RunsOn.CPU_RANKS or header.launch is Launch.ACCELERATE
    environment = {} if overlay is None else {"PYTHONPATH": str(overlay)}
    if is_run:
        substitute(environment, header)
    request = RunRequest(
        folder.failing_proof,
        "local" if is_run else f"simulated:{header.ranks}",
        gpus=header.ranks if is_run else None,
        cpu_ranks=is_run,
        interpreter=python,
        launcher="accelerate" if launched else "python",
        environment=environment,
        timeout_seconds=240,
    )
    result = start_run(request, lambda event: None, agrees=lambda question: True).wait()
    assert result is not None
    return result


@pytest.mark.long
@pytest.mark.torch
@pytest.mark.parametrize("folder", DECLARED, ids=lambda folder: folder.metadata.code)
def test_a_run_that_fails_names_its_rule(folder: RuleFolder, torch_python: Path) -> None:
    result = failed(folder, torch_python)
    code = folder.metadata.code
    if result.outcome is Outcome.SIMULATION_LIMIT:
        assert read_header(folder.failing_proof).runs_on is RunsOn.CUDA
        return
    assert result.outcome is Outcome.FAILED
    assert result.failures[0].code == (None if code in UNNAMED else code)


@pytest.mark.parametrize("folder", DECLARED, ids=lambda folder: folder.metadata.code)
def test_a_declared_failure_names_its_rule(folder: RuleFolder) -> None:
    code = folder.metadata.code
    assert named(folder) == (None if code in UNNAMED else code)
