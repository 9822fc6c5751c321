"""Which paths gave the same bits."""

from __future__ import annotations

from collections.abc import Sequence

from parity.compare.elementwise import Mask
from parity.compare.shards import Output, same_on_each_device
from parity.worker.protocol import PathOutcome

Groups = tuple[tuple[str, ...], ...]


def output_of(outcome: PathOutcome, name: str) -> Output | None:
    """An output of a path with what its devices hold; None where it has none of that name."""
    whole = outcome.outputs.get(name)
    return None if whole is None else Output(whole, tuple(outcome.shards.get(name, ())))


def groups(outcomes: Sequence[PathOutcome], output: str, *, exclude: Mask | None = None) -> Groups:
    """The paths that gave an output, grouped by equal bits on each device (all NaNs are equal).

    Which paths stand together does not depend on the order of `outcomes`; how they are listed does.

    Args:
        outcomes: of the paths.
        output: the output's name.
        exclude: True where no rule determines the element.
    """
    found: list[tuple[Output, list[str]]] = []
    for outcome in outcomes:
        one = output_of(outcome, output)
        if one is None:
            continue
        mask = exclude if exclude is not None and exclude.shape == one.whole.shape else None
        for representative, paths in found:
            if same_on_each_device(one, representative, exclude=mask):
                paths.append(outcome.path)
                break
        else:
            found.append((one, [outcome.path]))
    return tuple(tuple(paths) for _, paths in found)
