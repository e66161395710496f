"""Sentences of the isolation that users read."""

from __future__ import annotations

from ranksafe.localization import Translated

SET_UP_FAILED = Translated(
    en="the isolation of the rehearsal could not be set up: {reason}",
    zh_cn="无法建立预演的隔离环境：{reason}",
)
CANNOT_BE_WRITTEN = Translated(
    en="the file system of {folder} can carry no overlay: in this rehearsal it can be read, not written",
    zh_cn="{folder} 所在的文件系统不支持叠加（overlay）：在本次预演中只能读取，不能写入",
)
