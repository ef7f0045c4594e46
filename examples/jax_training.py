# SPDX-License-Identifier: Apache-2.0
# Copyright 2026 The Accord authors
"""Data-parallel training with JAX and mpi4jax: nothing here knows of Accord.

    MPI4JAX_USE_CUDA_MPI=1 accord run -n 2 --bind-gpu python examples/jax_training.py

The whole step is compiled, with the sum of the gradients over all ranks in it. On a GPU mpi4jax hands device
memory to MPI if MPI4JAX_USE_CUDA_MPI is 1, after it has waited for XLA's stream. Rank 0 also trains alone on
all data and compares. Leaves with status 77 and the reason where JAX or mpi4jax is missing.
"""

import os
import sys
import time

SKIPPED = 77

# Else the first rank takes most of a GPU that several share.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

try:
    import jax
    import jax.numpy as jnp
    import mpi4jax
    from mpi4py import MPI
except ImportError as error:
    print(f"skipped: {error}", file=sys.stderr)
    sys.exit(SKIPPED)

comm = MPI.COMM_WORLD
STEPS, SAMPLES, WIDTH, RATE = 200, 64, 128, 0.1


def data_of(rank):
    """Points of a curve in many dimensions, others on each rank."""
    points = jax.random.normal(jax.random.key(rank), (SAMPLES, WIDTH))
    return points, jnp.sin(points.sum(axis=1, keepdims=True) / WIDTH**0.5)


def new_parameters():
    first, second = jax.random.split(jax.random.key(1000))
    return {
        "in": jax.random.normal(first, (WIDTH, WIDTH)) / WIDTH**0.5,
        "out": jax.random.normal(second, (WIDTH, 1)) / WIDTH**0.5,
    }


def loss(parameters, points, values):
    return jnp.square(jnp.tanh(points @ parameters["in"]) @ parameters["out"] - values).mean()


def everywhere(x):
    return mpi4jax.allreduce(x, op=MPI.SUM, comm=comm) / comm.size


def step_with(mean):
    @jax.jit
    def step(parameters, points, values):
        now, gradients = jax.value_and_grad(loss)(parameters, points, values)
        moved = jax.tree.map(lambda p, g: p - RATE * mean(g), parameters, gradients)
        return moved, mean(now)

    return step


def train(step, points, values):
    parameters, losses = new_parameters(), []
    for _ in range(STEPS):
        parameters, now = step(parameters, points, values)
        losses.append(now)
    return jax.block_until_ready(parameters), float(losses[0]), float(losses[-1])


def difference(one, other):
    differences = jax.tree.map(lambda a, b: jnp.abs(a - b).max() / jnp.abs(b).max(), one, other)
    return max(map(float, jax.tree.leaves(differences)))


def main():
    mine = data_of(comm.rank)
    step = step_with(everywhere)
    jax.block_until_ready(step(new_parameters(), *mine))  # compiles
    begin = time.perf_counter()
    parameters, first, last = train(step, *mine)
    step_us = (time.perf_counter() - begin) / STEPS * 1e6
    if comm.rank != 0:
        return 0
    all_data = [
        jnp.concatenate(parts) for parts in zip(*map(data_of, range(comm.size)), strict=True)
    ]
    error = difference(parameters, train(step_with(lambda x: x), *all_data)[0])
    right = error < 1e-4 and last < 0.5 * first
    device = jax.devices()[0].device_kind
    print(f"{comm.size} ranks on {device}: loss {first:.4f} -> {last:.4f}, {step_us:.0f} us a step")
    print(f"parameters differ from one process's by {error:.1g}: {'correct' if right else 'wrong'}")
    return 0 if right else 1


sys.exit(main())
