"""One build step; everything else is in pyproject.toml.

The dashboard lies at the top of the repository, outside the package. A wheel has it in `pamer_lab/_app`, where `config.app_folder` finds
it; an editable install uses the checkout's own files.
"""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

DASHBOARD = ("app.py", "pages/*.py", ".streamlit/config.toml", "sample_traces/**/*")


class BuildWithDashboard(build_py):
    """Copies the dashboard into the built package and names its files, so that a source archive has them too."""

    def dashboard(self) -> dict[str, str]:
        """Built file -> file of the repository."""
        found = sorted(path for pattern in DASHBOARD for path in Path().glob(pattern) if path.is_file())
        return {(Path(self.build_lib) / "pamer_lab" / "_app" / path).as_posix(): path.as_posix() for path in found}

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            for target, source in self.dashboard().items():
                self.mkpath(str(Path(target).parent))
                self.copy_file(source, target)

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:
        return [*super().get_outputs(include_bytecode), *([] if self.editable_mode else self.dashboard())]

    def get_source_files(self) -> list[str]:
        return [*super().get_source_files(), *self.dashboard().values()]


setup(cmdclass={"build_py": BuildWithDashboard})
