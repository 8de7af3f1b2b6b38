# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tuning a device
#
# **Question.** What do the parameters of a kernel cost or gain on this device, and does
# the answer depend on them?
#
# Every kernel has parameters that change how fast it is and never what it answers: the
# width of vectors, the size of groups, what is kept in local memory. For many devices
# good ones are shipped; for others `pyedmcl tune` finds them. This notebook tries some
# by hand, then lets the tuner search for some seconds, in a database of its own that is
# thrown away. For good, run `pyedmcl tune` once in a shell: it takes a minute for each
# of some ninety problems and can be stopped at any time.

# %%
import json
import os
import subprocess
import sys
import tempfile
import time
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

scratch = tempfile.TemporaryDirectory()
os.environ["PYEDMCL_DATA_DIR"] = scratch.name  # before pyedmcl looks for its database

import pyedmcl  # noqa: E402
from pyedmcl.tuning.parameters import using  # noqa: E402


def shell(command):
    """What a command of pyedmcl prints. In a notebook `!pyedmcl ...` does the same."""
    words = [sys.executable, "-m", "pyedmcl", *command.split()]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


# %% [markdown]
# ## What may be tuned?
# `recurrence_image` is the kernel that counts the cells behind the pixels of a
# recurrence plot.

# %%
print(
    "\n".join(
        shell("tune recurrence_image --mode rapid --explain").strip().splitlines()[:8]
    )
)

# %% [markdown]
# ## By hand
# `lanes` is how many columns of the plot are one vector, and `vectors` how many of
# these a work-item has. All combinations are compiled, then timed in turns, so that a
# moment in which the machine is busy misleads nobody; the shortest time counts. `using`
# is what the tuner itself uses to force parameters.

# %%
rng = np.random.default_rng(1)
x = np.sin(np.arange(10_000) * 0.1) + 0.1 * rng.standard_normal(10_000)


def image():
    return pyedmcl.recurrence_plot(x, m=5, tau=3, radius=0.5, pixels=200)


lanes, vectors, rounds = (1, 4, 8, 16), (1, 4, 16), 5
choices = [(a, b) for a in lanes for b in vectors]
expected, same = image(), []
timings = np.empty((rounds + 1, len(choices)))
for number, place in np.ndindex(timings.shape):
    with using(
        recurrence_image={"lanes": choices[place][0], "vectors": choices[place][1]}
    ):
        begin = time.perf_counter()
        found = image()
        timings[number, place] = (time.perf_counter() - begin) * 1e3
    same.append(found.counts.tobytes() == expected.counts.tobytes())
timings = timings[1:]  # the first round compiles
milliseconds = timings.min(axis=0).reshape(len(lanes), len(vectors))
spread = milliseconds.max() / milliseconds.min()
used = expected.provenance["tuning"]["recurrence_image"][0]
print(f"without a word of ours: {used['grade']}, {used['parameters']}")
print(f"{milliseconds.min():.0f} to {milliseconds.max():.0f} ms")
print(f"the same image each time: {all(same)}")

# %% [markdown]
# ## By the tuner
# It compiles and times configurations in processes of their own, compares each answer
# with that of a slow, obvious NumPy program, and what it finds has to beat the defaults
# in a last comparison. It goes on for as long as it is allowed to; a real search gets
# some minutes. `pyedmcl db export -o mine.jsonl` then writes what was found, for
# `pyedmcl db import` elsewhere.

# %%
summary = json.loads(
    shell("tune recurrence_image --mode rapid --budget 5s --quiet --json")
)
device, case = summary["device"], summary["cases"][0]
n_tried = sum(case["counts"].values())
print(f"{case['case']}: {n_tried} configurations tried;")
print(f"what is kept is {case['gain']:.2f} times as fast as the defaults")
print(shell("db show"))

# %% [markdown]
# ## The picture

# %% tags=["hide-input"]
BLUE, RED, GREY = "#21526b", "#d1495b", "#9aa5ab"
plt.rcParams.update({"axes.titlelocation": "left"})
figure, axes = plt.subplots(
    1, 2, figsize=(9, 3.9), layout="constrained", width_ratios=[1, 1.1]
)

ax = axes[0]
shade = ax.imshow(milliseconds, cmap="Blues", norm="log", aspect="auto")
for (row, column), value in np.ndenumerate(milliseconds):
    dark = value > np.sqrt(milliseconds.min() * milliseconds.max())
    ax.text(
        column,
        row,
        f"{value:.0f}",
        ha="center",
        va="center",
        color="white" if dark else "black",
    )
ax.set_xticks(range(len(vectors)), vectors)
ax.set_yticks(range(len(lanes)), lanes)
ax.set(xlabel="vectors", ylabel="lanes", title="a  Milliseconds of one plot")
now = used["parameters"]["lanes"], used["parameters"]["vectors"]
if now[0] in lanes and now[1] in vectors:
    corner = vectors.index(now[1]) - 0.47, lanes.index(now[0]) - 0.46
    ax.add_patch(plt.Rectangle(corner, 0.94, 0.92, fill=False, ec=RED, lw=2.5))

ax = axes[1]
order = np.argsort(timings.min(axis=0))
ax.vlines(
    np.arange(len(choices)),
    timings.min(axis=0)[order],
    timings.max(axis=0)[order],
    color=GREY,
    lw=1,
)
ax.plot(
    np.arange(len(choices)),
    timings.T[order],
    "o",
    color=BLUE,
    ms=4,
    alpha=0.5,
    mec="none",
)
if now in choices:
    place = list(order).index(choices.index(now))
    ax.plot(
        place,
        timings.min(axis=0)[order[place]],
        "s",
        color=RED,
        ms=9,
        mfc="none",
        mew=2,
        label="used by default",
    )
    ax.legend(frameon=False, loc="upper left")
ax.set_xticks(
    range(len(choices)),
    [f"{choices[i][0]}, {choices[i][1]}" for i in order],
    rotation=90,
)
ax.set(
    xlabel="lanes, vectors",
    ylabel="time (ms)",
    title=f"b  All {rounds} rounds",
    ylim=(0, None),
)
ax.spines[["top", "right"]].set_visible(False)
figure.savefig("tuning.png", dpi=200)
plt.show()

# %% [markdown]
# The frame marks the parameters that are used if nothing is said.
#
# ## The sentence

# %% tags=["hide-input"]
best = np.unravel_index(milliseconds.argmin(), milliseconds.shape)
sentence = (
    f"On {device['name']} ({device['runtime']}, {device['compute_units']} compute "
    f"units) a recurrence plot of {x.size:,} points takes {milliseconds.min():.0f} to "
    f"{milliseconds.max():.0f} ms with {len(choices)} choices of two parameters of "
    f"its kernel, a factor of {spread:.1f}, with the best for vectors of "
    f"{lanes[best[0]]} numbers; it is the same to the last cell in {sum(same)} of "
    f"{len(same)} runs."
)
print(fill(sentence, 88))
scratch.cleanup()
