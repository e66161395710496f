"""What a rehearsal's processes find in their environment instead of secrets, services and the network.

The switches are the libraries' own: huggingface_hub 2.4.0 ``constants.py``, datasets 5.2.0 ``config.py``, wandb 0.31.0
``wandb_settings.py``, neptune 1.14.0 ``envs.py``, clearml 2.1.12 ``backend_api/session/defs.py``, swanlab 0.10.3
``sdk/internal/settings``, comet_ml 3.58.8 ``config/config_map.py``, and transformers 5.23.0 for ``COMET_MODE``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

ISOLATED_VARIABLE = "RANKSAFE_REHEARSAL_ISOLATED"
"""Is ``1`` where files are overlays; read by ``ranksafe_rehearsal.outside.folders``."""

OFFLINE: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
"""Caches are still read."""

THROUGH_THE_READER: Mapping[str, str] = {
    "HF_HUB_DISABLE_XET": "1",
    "HF_HUB_ENABLE_HF_TRANSFER": "0",
}
"""Downloads in compiled code know of no reader: huggingface_hub has the same in Python."""

NOTHING_SENT: Mapping[str, str] = {
    "DO_NOT_TRACK": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "WANDB_MODE": "disabled",
    "WANDB_SILENT": "true",
    "WEAVE_DISABLED": "true",
    "COMET_MODE": "disabled",
    "COMET_START_ONLINE": "false",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "disabled",
}
"""Trackers keep their functions and contact nobody."""

_SERVICES = frozenset(
    {
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DOCKER_HOST",
        "KUBECONFIG",
        "VSCODE_IPC_HOOK",
        "VSCODE_IPC_HOOK_CLI",
        "VSCODE_GIT_IPC_HANDLE",
        "VSCODE_GIT_ASKPASS_NODE",
        "VSCODE_GIT_ASKPASS_MAIN",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
    }
)
_SECRET = re.compile(
    r"(?:^|_)(?:TOKEN|API_?KEY|ACCESS_KEY|ACCESS_KEY_ID|SECRET|SECRET_KEY|SECRET_ACCESS_KEY|PASSWORD|PASSWD|PASSPHRASE"
    r"|CREDENTIALS?|AUTH_TOKEN|PRIVATE_KEY|CONNECTION_STRING|ACCOUNT_KEY|SAS_TOKEN)(?:$|_(?:ID|FILE|JSON|BASE64)$)",
    re.IGNORECASE,
)
_LOOKS_LIKE = {
    "HF_TOKEN": "hf_" + "x" * 34,
    "HUGGING_FACE_HUB_TOKEN": "hf_" + "x" * 34,
    "WANDB_API_KEY": "0" * 40,
}


def without_secrets(environment: Mapping[str, str]) -> dict[str, str | None]:
    """Changes that take secrets and the user's services away; None: the variable goes.

    A secret becomes a worthless value of the same length: a script may read the variable and must not fail for that.
    """
    changes: dict[str, str | None] = {name: None for name in environment if name in _SERVICES}
    for name, value in environment.items():
        if value and _SECRET.search(name) and not name.startswith(("RANKSAFE_", "TOKENIZERS_")):
            changes[name] = _LOOKS_LIKE.get(name, "x" * len(value))
    return changes
