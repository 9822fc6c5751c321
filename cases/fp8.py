"""A model of blocks in float8 under a scan, and a Dense in float8 that is applied twice."""

from functools import partial

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.linen import fp8_ops

FEATURES = 16
OVERWRITTEN = fp8_ops.OVERWRITE_WITH_GRADIENT


def quantised(x, to):
    """Rounded to float8, as are the tangents that pass."""
    return x.astype(to).astype(x.dtype)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def quantised_alone(x, to):
    """Rounded to float8; tangents pass in the dtype of x."""
    return quantised(x, to)


@quantised_alone.defjvp
def _pass(to, primals, tangents):
    return quantised_alone(*primals, to), tangents[0]


class Block(nn.Module):
    """Two layers in float8 with a residual; what leaves it is quantised."""

    gradient: str
    between: str
    tangents: str

    @nn.compact
    def __call__(self, x):
        """x [batch, features] to the same shape."""

        def op():
            return nn.Fp8DotGeneralOp(e5m2_dtype=jnp.dtype(self.gradient), amax_history_length=4)

        hidden = nn.Dense(2 * FEATURES, dtype=jnp.bfloat16, dot_general_cls=op)(x)
        out = nn.Dense(FEATURES, dtype=jnp.bfloat16, dot_general_cls=op)(nn.relu(hidden))
        leave = quantised if self.tangents == self.between else quantised_alone
        return leave(x + out.astype(jnp.float32), self.between)


class Model(nn.Module):
    """Blocks under `remat_scan`."""

    gradient: str
    between: str
    tangents: str

    @nn.compact
    def __call__(self, x):
        """x [batch, features] to the same shape."""
        scanned = nn.remat_scan(
            Block,
            lengths=(2,),
            variable_axes={"params": 0, OVERWRITTEN: 0},
            split_rngs={"params": True},
        )
        return scanned(self.gradient, self.between, self.tangents)(x)


class Shared(nn.Module):
    """A Dense in float8 that is applied twice."""

    @nn.compact
    def __call__(self, x):
        """x [batch, features] to the same shape."""

        def op():
            return nn.Fp8DotGeneralOp(amax_history_length=4)

        dense = nn.Dense(FEATURES, use_bias=False, dot_general_cls=op, name="dense")
        return dense(2 * dense(x))


def _variables(module, x, kernels):
    """The variables: kernels as given, biases of an eighth, histories of zeros, scales of one."""
    shapes = jax.eval_shape(module.init, jax.random.key(0), x)
    left = list(kernels)

    def fill(path, leaf):
        name = path[-1].key
        if name == "kernel":
            return left.pop(0)
        constant = 0.125 if name == "bias" else 1.0 if name.endswith("scale") else 0.0
        return jnp.full(leaf.shape, constant, leaf.dtype)

    return jax.tree_util.tree_map_with_path(fill, shapes)


def training_step(x, target, hidden, out, gradient, between, tangents):
    """Loss, gradients, and the parameters after one step.

    hidden [blocks, 16, 32] and out [blocks, 32, 16] are the kernels. The backward dots quantise to
    `gradient`; what is passed between blocks is `between`, and its tangents are `tangents`.
    """
    model = Model(gradient, between, tangents)
    variables = _variables(model, x, (hidden, out))
    learnt, overwritten = variables["params"], variables[OVERWRITTEN]

    def loss(learnt, overwritten):
        found = model.apply({"params": learnt, OVERWRITTEN: overwritten}, x)
        return jnp.mean((found - target) ** 2)

    value, (gradients, overwritten) = jax.value_and_grad(loss, (0, 1))(learnt, overwritten)
    optimiser = optax.sgd(0.1, momentum=0.9)
    updates, _ = optimiser.update(gradients, optimiser.init(learnt), learnt)
    return {
        "loss": value,
        "gradients": gradients["Remat_scanBlock_0"],
        "params": optax.apply_updates(learnt, updates)["Remat_scanBlock_0"],
        "fp8": overwritten["Remat_scanBlock_0"],
    }


def shared(x, kernel):
    """What one loss leaves in the float8 variables of a Dense that it applies twice, or once."""
    once = nn.Dense(
        FEATURES,
        use_bias=False,
        dot_general_cls=lambda: nn.Fp8DotGeneralOp(amax_history_length=4),
        name="dense",
    )

    def left(apply, overwritten):
        def loss(overwritten):
            return jnp.sum(apply(overwritten) ** 2)

        return jax.grad(loss)(overwritten)["Fp8DotGeneralOp_0"]

    whole = _variables(Shared(), x, (kernel,))
    dense = {"params": whole["params"]["dense"]}

    def twice(overwritten):
        return Shared().apply({**whole, OVERWRITTEN: {"dense": overwritten}}, x)

    def first(overwritten):
        return once.apply({**dense, OVERWRITTEN: overwritten}, x)

    given = whole[OVERWRITTEN]["dense"]
    return {"twice": left(twice, given), "once": left(first, given)}
