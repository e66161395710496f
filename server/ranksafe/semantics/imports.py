"""What a file's imports bring: names of libraries, and of other files of the project."""

from __future__ import annotations

import ast

from ranksafe.semantics.cross_file import Project
from ranksafe.semantics.libraries import canonical, is_library
from ranksafe.semantics.structure import ModuleStructure


class Imports:
    """Asks the project on behalf of one file; each question is noted."""

    def __init__(
        self, module: ModuleStructure, name: str, path: str | None, project: Project | None
    ) -> None:
        self._module = module
        self.name = name
        self.path = path
        self.project = project
        self.is_package = path is not None and path.endswith("__init__.py")
        self.asked_project = False
        """Whether an answer came from other files: then it holds only as long as those stay the same."""

    def asked(self, name: str) -> Project | None:
        """The project, where it has to be asked about a dotted name; noted."""
        if self.project is None or is_library(name):
            return None
        self.asked_project = True
        self._module.note("project", name)
        return self.project

    def canonical(self, name: str) -> str:
        """The public name for an alias of a library's or the project's name."""
        public = canonical(name)
        project = self.asked(public)
        return public if project is None else project.resolve(public)

    def absolute_import(self, module: str | None, level: int) -> str:
        """Dotted name of an import's module, relative ones resolved against this file's."""
        if not level:
            return self.imported_module(module or "")
        parts = self.name.split(".")
        keep = len(parts) - level + (1 if self.is_package else 0)
        base = parts[: max(keep, 0)]
        return ".".join([*base, module] if module else base)

    def imported_module(self, name: str) -> str:
        """The project's name for an absolutely imported module; a library's stays as it is."""
        project = self.asked(name)
        return name if project is None else project.import_name(self.path, name)

    def star_imports(self) -> list[str]:
        """Modules of ``from m import *`` at module level."""
        modules = []
        for alias in self._module.module_bindings("*"):
            statement = self._module.parent(alias)
            if isinstance(statement, ast.ImportFrom):
                modules.append(self.absolute_import(statement.module, statement.level))
        return modules

    def star_export(self, origin: str, name: str) -> str | None:
        """What ``from origin import *`` of a project file brings under a name."""
        if self.project is None:
            return None
        self.asked_project = True
        self._module.note("project", origin)
        return self.project.export(origin, name)

    def is_project_class(self, name: str) -> bool:
        """Whether a canonical name is a class of another file of the project."""
        project = self.asked(name)
        return project is not None and project.is_class(name)

    def project_bases(self, name: str) -> list[str]:
        """Canonical names of the bases of a class of another project file."""
        project = self.asked(name)
        return [] if project is None else project.bases(name)

    def constant(self, alias: ast.alias) -> ast.expr | None:
        """The constant that a name imported from another project file is bound to."""
        statement = self._module.parent(alias)
        if self.project is None or not isinstance(statement, ast.ImportFrom):
            return None
        name = f"{self.absolute_import(statement.module, statement.level)}.{alias.name}"
        self.asked_project = True
        self._module.note("project", name)
        return self.project.constant(name)
