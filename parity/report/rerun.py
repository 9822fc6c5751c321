"""How the command line asks again for what a run was made in."""

from __future__ import annotations

from collections.abc import Mapping

from parity.record.encoding import loads

_DEFAULT = "default"


def arguments(facts: Mapping[str, str], environment: str) -> list[str]:
    """The arguments of `parity run` that choose an environment, such as `--env new=/opt/python`.

    Args:
        facts: what is noted of the run, as a record has it.
        environment: its name; where nothing is noted, that is all that is known.
    """
    known = loads(facts.get("arguments", "{}")).get(environment)
    if known is not None:
        return list(map(str, known))
    return [] if environment == _DEFAULT else ["--env", environment]
