from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import parity
from parity import cli
from parity.paths import names

from .project import BAD, GOOD, Invoke

ROOT = Path(__file__).parents[2]


def parity_process(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **more.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-c", "from parity.cli import main; main()", *arguments],
        env=environment,
        capture_output=True,
        timeout=120,
        check=False,
        **more,
    )


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (
                ["rnu"],
                "error: unknown command (got rnu; allowed {commands})\nhint: did you mean 'run'?\n",
            ),
            (
                ["frobnicate"],
                "error: unknown command (got frobnicate; allowed {commands})\n",
            ),
            (
                ["run", "--fromat", "json"],
                "error: unknown option of parity run (got --fromat)\n"
                "hint: did you mean '--format'?\n",
            ),
            (
                ["--halp"],
                "error: unknown option of parity (got --halp)\nhint: did you mean '--help'?\n",
            ),
            (
                ["run", "--format", "yaml"],
                "error: unknown --format (got yaml; allowed table, json, csv, markdown, github)\n",
            ),
            (
                ["run", "--paths", "eager,jitt"],
                "error: unknown path (got jitt; allowed {paths})\nhint: did you mean 'jit'?\n",
            ),
            (
                ["list", "--paths", ""],
                "error: unknown path (got nothing; allowed {paths})\n",
            ),
            (
                ["run", "--timeout", "nan"],
                "error: wrong timeout (got nan; allowed a positive number of seconds)\n",
            ),
            (
                ["run", "--timeout", "0"],
                "error: wrong timeout (got 0; allowed a positive number of seconds)\n",
            ),
            (
                ["list", "-k", "conv and"],
                "error: -k 'conv and' cannot be read (got its end; allowed a name, not, ()\n"
                "hint: names joined by and, or, not, such as -k 'conv and not jit'\n",
            ),
            (
                ["list", "nowhere.yaml"],
                "error: nowhere.yaml: no such file or folder\nhint: parity run cases/\n",
            ),
            (
                ["list", "nowhere.yaml::x"],
                "error: {here}/nowhere.yaml: no such file or folder\nhint: parity run cases/\n",
            ),
            (
                ["list", "empty"],
                "error: empty: no case file in this folder\n"
                "hint: a case file ends in .yaml or .yml; parity new prints a template\n",
            ),
            (
                ["new", "dotgeneral"],
                "error: unknown op (got 'dotgeneral'; allowed conv_general_dilated, dot_general, "
                "einsum, callable, flax, steps)\nhint: did you mean 'dot_general'?\n",
            ),
        ],
    )
    def test_a_mistake_exits_with_2_and_says_how_to_mend_it(
        self, here: Path, invoke: Invoke, arguments: list[str], message: str
    ) -> None:
        Path("empty").mkdir()
        message = message.replace("{here}", str(here)).replace("{paths}", ", ".join(names()))
        message = message.replace("{commands}", ", ".join(cli.commands.commands))
        assert invoke(*arguments) == (2, "", message)

    def test_without_a_command_the_help_is_shown(self, here: Path, invoke: Invoke) -> None:
        code, out, err = invoke()
        assert (code, out) == (2, "")
        assert err.startswith("Usage: parity [OPTIONS] COMMAND [ARGS]...")

    def test_help_and_version_are_data(self, here: Path, invoke: Invoke) -> None:
        for arguments in (["--help"], ["-h"], ["run", "--help"]):
            code, out, err = invoke(*arguments)
            assert (code, err) == (0, "")
            assert out.startswith("Usage: parity")
        assert invoke("--version") == (0, f"parity, version {parity.__version__}\n", "")

    def test_a_broken_configuration_exits_with_2(self, here: Path, invoke: Invoke) -> None:
        Path("pyproject.toml").write_text("[tool.parity]\ncase = ['x']\n")
        code, out, err = invoke("list")
        assert (code, out) == (2, "")
        assert err.startswith(f"{here}/pyproject.toml:2:1: unknown key in [tool.parity] (got case;")
        assert err.endswith("hint: did you mean cases?\n")


class TestSelection:
    def test_list_prints_one_full_id_a_line(self, here: Path, invoke: Invoke) -> None:
        assert invoke("list") == (
            0,
            "cases/differs.yaml::differs[eager]\n"
            "cases/differs.yaml::differs[jit]\n"
            "cases/fine.yaml::fine[eager]\n"
            "cases/fine.yaml::fine[jit]\n",
            "",
        )

    @pytest.mark.parametrize(
        "arguments",
        [
            ["cases/fine.yaml::fine[jit]"],
            ["cases/fine.yaml", "-k", "jit"],
            ["-k", "fine and not eager"],
            ["*fine*jit]"],
            ["cases/fine.yaml::fine", "--paths", "jit"],
            ["cases/fine.yaml", "cases/fine.yaml::fine", "cases", "-k", "fine and jit"],
        ],
    )
    def test_files_folders_ids_globs_and_expressions_select(
        self, here: Path, invoke: Invoke, arguments: list[str]
    ) -> None:
        assert invoke("list", *arguments) == (0, "cases/fine.yaml::fine[jit]\n", "")

    def test_an_id_may_be_spelt_from_where_one_stands(
        self, here: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir("cases")
        for target in ("fine.yaml::fine[jit]", "cases/fine.yaml::fine[jit]"):
            assert invoke("list", target) == (0, "cases/fine.yaml::fine[jit]\n", "")

    def test_paths_replace_those_of_the_case(self, here: Path, invoke: Invoke) -> None:
        code, out, _ = invoke("list", "cases/fine.yaml", "--paths", "jax2tf-native, eager,eager")
        assert (code, out.split()) == (
            0,
            ["cases/fine.yaml::fine[jax2tf-native]", "cases/fine.yaml::fine[eager]"],
        )

    @pytest.mark.parametrize("command", ["list", "run"])
    def test_nothing_selected_is_5(
        self, here: Path, invoke: Invoke, engine: list[Any], command: str
    ) -> None:
        assert invoke(command, "-k", "nothing") == (
            5,
            "",
            "error: -k 'nothing' matches none of 4 cases and paths\n",
        )
        assert invoke(command, "cases/fine.yaml::fnie") == (
            5,
            "",
            "error: no case matches 'cases/fine.yaml::fnie'\n"
            "hint: did you mean 'cases/fine.yaml::fine'?\n",
        )
        assert engine == []

    def test_validate_reports_every_broken_file_and_counts_the_others(
        self, here: Path, invoke: Invoke
    ) -> None:
        assert invoke("validate") == (0, "2 cases in 2 files are valid\n", "")
        Path("cases/b.yaml").write_text(BAD)
        Path("cases/c.yaml").write_bytes(b"\xff\n")
        code, out, err = invoke("validate")
        assert (code, out) == (2, "2 cases in 2 files are valid\n")
        assert "cases/b.yaml:1:1: unknown key 'abuot'" in err
        assert "hint: did you mean 'about'?" in err
        assert "cases/c.yaml" in err

    def test_list_goes_on_after_a_broken_file(self, here: Path, invoke: Invoke) -> None:
        Path("cases/b.yaml").write_text(BAD)
        code, out, err = invoke("list", "-k", "jit")
        assert code == 2
        assert out.splitlines() == [
            "cases/differs.yaml::differs[jit]",
            "cases/fine.yaml::fine[jit]",
        ]
        assert err.startswith("cases/b.yaml:1:1: ")


class TestOtherCommands:
    def test_new_writes_what_validate_accepts(self, here: Path, invoke: Invoke) -> None:
        assert invoke("new", "dot_general", "-o", "cases/my dot.yaml") == (
            0,
            "",
            "wrote cases/my dot.yaml; parity validate cases/my dot.yaml checks it\n",
        )
        assert invoke("validate", "cases/my dot.yaml")[0] == 0
        assert "name: my_dot\n" in Path("cases/my dot.yaml").read_text()

    def test_new_overwrites_nothing(self, here: Path, invoke: Invoke) -> None:
        before = Path("cases/fine.yaml").read_text()
        assert invoke("new", "einsum", "-o", "cases/fine.yaml") == (
            2,
            "",
            "error: cases/fine.yaml: exists already\nhint: name another file\n",
        )
        assert Path("cases/fine.yaml").read_text() == before
        assert invoke("new", "einsum", "-o", "no/where.yaml") == (
            2,
            "",
            "error: no/where.yaml: cannot be written (No such file or directory)\n",
        )

    def test_new_prints_without_a_file(self, here: Path, invoke: Invoke) -> None:
        code, out, err = invoke("new", "einsum")
        assert (code, err) == (0, "")
        assert "op: einsum\n" in out

    def test_schema_is_a_json_schema(self, here: Path, invoke: Invoke) -> None:
        code, out, _ = invoke("schema")
        assert code == 0
        assert json.loads(out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"

    def test_doctor_shows_the_interpreter(self, here: Path, invoke: Invoke) -> None:
        code, out, _ = invoke("doctor")
        assert out.startswith(f"interpreter  {sys.executable}\n")
        assert code == (0 if " available" in out else 2)
        assert invoke("doctor", "--python", "no/such")[0] == 2


class TestProcess:
    """What only a process of its own shows."""

    def test_a_closed_pipe_is_no_error(self, here: Path) -> None:
        """The reader takes one line and leaves; far more than a pipe holds is still to come."""
        sweep = "seed: [" + ", ".join(map(str, range(3000))) + "]"
        Path("cases/many.yaml").write_text(f"{GOOD}sweep:\n  {sweep}\n")
        command = f'"{sys.executable}" -c "from parity.cli import main; main()" list'
        done = subprocess.run(
            ["bash", "-c", f"{command} | head -1; echo ${{PIPESTATUS[0]}}"],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.stdout.splitlines() == ["cases/differs.yaml::differs[eager]", "0"]
        assert done.stderr == ""

    def test_a_stdout_that_was_never_open_is_no_error(self, here: Path) -> None:
        done = subprocess.run(
            ["bash", "-c", f'"{sys.executable}" -c "from parity.cli import main; main()" list >&-'],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")

    def test_an_ascii_terminal_loses_nothing(self, here: Path) -> None:
        Path("cases/b.yaml").write_text(GOOD.replace("about:", "abuöt:"), encoding="utf-8")
        done = parity_process("validate", env={"PYTHONIOENCODING": "ascii"})
        assert done.returncode == 2
        assert b"unknown key 'abu\\xf6t'" in done.stderr
        assert parity_process("run", "--help", env={"PYTHONIOENCODING": "ascii"}).returncode == 0

    def test_help_imports_little_and_validate_no_jax(self, here: Path) -> None:
        code = (
            "import sys\nfrom parity.cli import invoke\n"
            "invoke(['--help'])\n"
            "heavy = {'numpy', 'pydantic', 'rich', 'pandas', 'ruamel', 'execnet', 'jax'}\n"
            "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
            "assert invoke(['validate']) == 0\n"
            "heavy = {'jax', 'jaxlib', 'tensorflow', 'pandas', 'numba', 'execnet'}\n"
            "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
