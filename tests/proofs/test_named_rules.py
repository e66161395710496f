"""The failure that a proof declares names the rule that it proves, as that of a run does."""

from __future__ import annotations

import pytest
from ranksafe.checker.registry import Registry
from ranksafe.checker.rule_folder import RuleFolder
from ranksafe.runs.explain import explain
from ranksafe.runs.explain.evidence import Evidence, Raised, RankEvidence
from ranksafe.runs.explain.locate import UserCode
from ranksafe.runs.model import Frame
from ranksafe.runs.predicted import with_predicted_rule
from ranksafe.runs.proofs.header import ExpectedException, RunsOn, read_header

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


@pytest.mark.parametrize("folder", DECLARED, ids=lambda folder: folder.metadata.code)
def test_a_declared_failure_names_its_rule(folder: RuleFolder) -> None:
    code = folder.metadata.code
    assert named(folder) == (None if code in UNNAMED else code)
