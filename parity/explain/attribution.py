"""Attribution: which named arithmetic a path computes in, and how surely it is that one.

A model explains an output if every element lies inside its interval and, where a sum has an order
to choose, the output as a whole is no farther from its point than three times what honest orders of
that model reach. Of several that do, the answer is the *tightest*, and among equally tight ones the
*simplest*:

- a model whose point lies more than four times as far (rms) as the nearest one's is left out:
  through many layers the intervals of all models grow until they hold everything, and the points
  still tell.
- tightness is the number of bits that a model leaves open in each element, on average (log2 of the
  values of the dtype inside its interval). A model within two bits of the tightest is as tight.
  So a model never wins by width: an interval that holds everything says nothing.
- simplicity is the order of `reference.models.MODELS`.
- a model whose intervals are mostly wider than the values that they enclose is vacuous and never
  an answer.

How surely the others are ruled out is a count: the elements in which each is refuted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from parity.casefile.case import Case
from parity.compare.metrics import comparable, measure
from parity.compare.standing import standing
from parity.explain.laboratory import Arrays, Asking, Laboratory
from parity.explain.standings import ModelStanding, enclosure_of, includes, order, standings
from parity.explain.structure import Hypothesis, hypotheses
from parity.explain.telling import Distinction, distinguish
from parity.reference.models import MODELS, NAMES
from parity.worker.protocol import PathOutcome, References

STRICT = "strict"

_AS_TIGHT = 2.0
"""Bits by which a model may leave more open than the tightest and still count as equally tight."""

_AS_NEAR = 4.0
"""How many times as far from an output as the nearest one a model's point may be."""

_STRUCTURAL = 0.1
"""Relative rms error from which on no rounding is to blame: structural hypotheses are tried."""


@dataclass(frozen=True)
class Attribution:
    """Why one output of a path is not what was declared, or that it is.

    Attributes:
        path: whose output it is.
        output: its name.
        model: the model that explains it: "strict" where it is what was declared, a name in
            `reference.models.MODELS`, licences ("reciprocal"), or "" where none does.
        variant: which variant of the model, "" where it has one only.
        standings: how the output stands under every model that applies, on the case's operands.
        alike: models that explain it as well and could not be told apart, generated operands
            included.
        wider: models that explain it as well because they allow everything that this one does:
            no operands rule them out, and nothing asks for them.
        distinctions: what was generated to tell models apart, and what the path did there.
        structure: what relates the output to the right one where the error is near 1, best first.
        elements: of the output.
        rms_rel: relative rms error against f64, None where it cannot be measured.
        no_effect: what the path accepted without any effect, "" for nothing.
        missing: why there is no attribution, "" if there is.
    """

    path: str
    output: str
    model: str = ""
    variant: str = ""
    standings: tuple[ModelStanding, ...] = ()
    alike: tuple[str, ...] = ()
    wider: tuple[str, ...] = ()
    distinctions: tuple[Distinction, ...] = ()
    structure: tuple[Hypothesis, ...] = ()
    elements: int = 0
    rms_rel: float | None = None
    no_effect: str = ""
    missing: str = ""

    @property
    def name(self) -> str:
        """The model with its variant; the best structural hypothesis where there is none."""
        if self.model:
            return f"{self.model} ({self.variant})" if self.variant else self.model
        return self.structure[0].name if self.structure else ""

    @property
    def meaning(self) -> str:
        """One sentence about a path that computes so."""
        for entry in MODELS:
            if entry.name == self.model:
                return entry.meaning
        if self.model == STRICT:
            return "It is what the program declares."
        if self.model:
            return f"It is what the program declares, with the licences {self.model}."
        if self.structure:
            return self.structure[0].meaning
        return "No model that applies explains every element."

    @property
    def source(self) -> str:
        """Where the model is described, "" for what is no model."""
        return next((entry.source for entry in MODELS if entry.name == self.model), "")

    @property
    def rivals(self) -> tuple[ModelStanding, ...]:
        """The other models, the one with the fewest elements outside first."""
        others = [s for s in self.standings if s.model not in (self.model, *self.wider)]
        return tuple(sorted(others, key=lambda s: (s.outside, s.apart or 0.0)))

    @property
    def certainty(self) -> int | None:
        """In how many elements the rival that comes nearest is refuted, all operands counted.

        0 where one could not be told apart or only its rms distance speaks against it; None
        without a model or rivals, and for what was declared.
        """
        if not self.model or self.model == STRICT or not self.rivals:
            return None
        if self.alike:
            return 0
        elsewhere = [d for d in self.distinctions if d.decided]
        counts = [
            s.outside + sum(d.outside.get(s.name, 0) for d in elsewhere)
            for s in self.rivals
            if not s.vacuous
        ]
        return min(counts, default=None)


def attribute(
    case: Case,
    outcome: PathOutcome,
    references: References,
    *,
    laboratory: Laboratory | None = None,
    inputs: Arrays | None = None,
    seconds: float = 30.0,
) -> tuple[Attribution, ...]:
    """Why each output of a path is not what was declared.

    Args:
        case: whose path it is.
        outcome: what the path made of it.
        references: of the case, with the models of `reference.models.NAMES` asked for.
        laboratory: where to ask the path and the references again, on operands that tell apart
            models which the case's own do not, and on changed programs; None for neither.
        inputs: the operands, the case's own if None.
        seconds: how long the laboratory may be asked; what is known by then is the answer.

    Returns:
        One attribution for each output, in order; one without an output where the path has none.
    """
    idle = outcome.evidence.get("no_effect", "")
    if outcome.failure is not None:
        return (Attribution(outcome.path, "", no_effect=idle, missing=outcome.outcome),)
    if references.failure is not None:
        why = f"no reference: {references.failure.message}"
        return tuple(Attribution(outcome.path, o, missing=why) for o in outcome.outputs)
    asking = None if laboratory is None else Asking(laboratory, seconds).laboratory
    it = _Attributing(case, outcome, references, asking, inputs)
    return tuple(replace(it.output(name), no_effect=idle) for name in outcome.outputs)


@dataclass(frozen=True)
class _Attributing:
    case: Case
    outcome: PathOutcome
    references: References
    laboratory: Laboratory | None
    inputs: Arrays | None

    def output(self, name: str) -> Attribution:
        got = self.outcome.outputs[name]
        found = Attribution(self.outcome.path, name, elements=got.size)
        ideal = self.references.f64.get(name)
        own = standing(got, name, self.references)
        if ideal is None:
            return replace(found, missing="no reference")
        if own is None:  # another shape or dtype
            return replace(found, structure=self._structure(got, name))
        if comparable(got, ideal.point):
            exclude = self.references.unspecified.get(name)
            found = replace(found, rms_rel=measure(got, ideal.point, exclude=exclude).rms_rel)
        found = replace(found, standings=standings(got, name, self.references))
        if own.faithful and not own.licences:
            return replace(found, model=STRICT)
        found = self._explained(found, own.licences if own.faithful else "")
        far = found.rms_rel is None or not found.rms_rel <= _STRUCTURAL
        if not found.model and (far or _other_pattern(got, ideal.point)):
            found = replace(found, structure=self._structure(got, name))
        return found

    def _explained(self, found: Attribution, licences: str) -> Attribution:
        """With the model that explains the output, told apart from the others if that is needed."""
        holding = [s for s in found.standings if _explains(s, licences)]
        if not holding:
            return found
        distinctions: tuple[Distinction, ...] = ()
        best = choose(holding)
        if self.laboratory is not None and len({s.model for s in holding}) > 1:
            arrays = self.case.arrays() if self.inputs is None else self.inputs
            spec = self.case.program
            distinctions = distinguish(self.laboratory, spec, arrays, found.output, holding, best)
            left = [s for s in holding if not any(s.name in d.refuted for d in distinctions)]
            best = choose(left) if left else best
            holding = left or holding
        others = [s for s in holding if s.model != best.model]
        wider = dict.fromkeys(s.model for s in others if self._is_wider(found.output, s, best))
        alike = dict.fromkeys(s.model for s in others if s.model not in wider)
        return replace(
            found,
            model=best.model,
            variant=best.variant,
            alike=tuple(alike),
            wider=tuple(wider),
            distinctions=distinctions,
        )

    def _is_wider(self, output: str, wider: ModelStanding, narrower: ModelStanding) -> bool:
        """Whether a model allows all that another one does, and more."""
        outer, inner = (
            enclosure_of(self.references, output, one.name) for one in (wider, narrower)
        )
        return includes(outer, inner) and not includes(inner, outer)

    def _structure(self, got: np.ndarray, name: str) -> tuple[Hypothesis, ...]:
        arrays = self.case.arrays() if self.inputs is None else self.inputs
        return hypotheses(got, name, self.case.program, arrays, self.references, self.laboratory)


def _other_pattern(got: np.ndarray, want: np.ndarray) -> bool:
    """Whether other elements are finite than should be."""
    if got.dtype.kind in "biu" or want.dtype.kind in "biuO":
        return False
    ours = np.isfinite(got.astype(want.dtype))
    return bool((ours != np.isfinite(want)).any())


def _explains(one: ModelStanding, licences: str) -> bool:
    """Whether a standing may be an answer; licences only where the aggregate test passed, too."""
    if one.model == STRICT or not one.holds or one.vacuous:
        return False
    if order(one.model) >= 0 and one.model != "fma-contraction":
        return True
    return bool(licences) and _included(licences, one.model)


def _included(needed: str, model: str) -> bool:
    given = {"fma"} if model == "fma-contraction" else set(model.split("+"))
    return set(needed.split("+")) <= given


def choose(holding: Sequence[ModelStanding]) -> ModelStanding:
    """The simplest of the models that are as near as the nearest and as tight as the tightest.

    Args:
        holding: at least one model that explains an output.
    """
    nearest = min(one.distance for one in holding)
    near = [one for one in holding if one.distance <= _AS_NEAR * nearest]
    tightest = min(one.openness for one in near)
    as_tight = [one for one in near if one.openness <= tightest + _AS_TIGHT]
    return min(as_tight, key=lambda one: (order(one.model), one.openness))


ASKED = NAMES
"""The models that `Workers.execute(..., models=…)` is asked for before an attribution."""
