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
# # A recurrence plot of a million points
#
# **Question.** A series has a million values. Which of its stretches are alike, and
# which are never visited again?
#
# A matrix of a million by a million has 10¹² cells: no memory holds it and no screen
# shows it. It is never held here: an image counts the cells behind each of its pixels.
# Leaving out points instead, as is often done, shows lines that are not there.
#
# The series is simulated: an insect population (Ricker's map) whose growth rate follows
# a slow cycle, so that calm and chaotic times take turns.

# %% tags=["hide-input"]
from math import exp
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

import pyedmcl

N = 1_000_000
rng = np.random.default_rng(3)
growth = 2.7 + 0.45 * np.sin(2 * np.pi * 2.5 * np.arange(N) / N - 1.2)
value, series = 0.5, []
for rate, noise in zip(
    growth.tolist(), np.exp(0.02 * rng.standard_normal(N)).tolist(), strict=True
):
    value *= exp(rate * (1 - value)) * noise
    series.append(value)
x = np.array(series)

# %% [markdown]
# ## How much of it?
# `pyedmcl.recurrence_plot(x, m=3, radius=0.1, radius_unit="std")` counts all cells. The
# page on recurrence tells what such an image takes on a GPU; a few cores of a processor
# take much longer. So here every 51st state is compared with all of the million: each
# pixel counts one of 51 of its cells, spread evenly, and all columns are there. (An odd
# number, since every 50th step would see one side only of a cycle of two steps.) Set
# `EVERY = 1` for all cells.

# %%
EVERY, PIXELS = 51, 500
states = pyedmcl.embed(x, E=3).values
states = states[~np.isnan(states).any(axis=1)]
recurrence = {"embedded": True, "radius": 0.1, "radius_unit": "std"}
plot = pyedmcl.recurrence_plot(
    states, states[::EVERY], pixels=(PIXELS, PIXELS), **recurrence
)
pairs = len(states) * len(states[::EVERY])
density = (plot.density + plot.density.T) / 2  # the whole matrix is symmetric
print(f"{pairs:.1e} pairs of states, {plot.counts.sum() / pairs:.2%} of them recur")

# %% [markdown]
# Does the reduction mislead? Of 20 by 20 pixels of a chaotic time all cells can be
# counted.

# %%
begin, edge = int(np.argmax(growth)), 20 * (N // PIXELS)
piece = states[begin : begin + edge]
whole = pyedmcl.recurrence_plot(piece, pixels=(20, 20), **recurrence).density
reduced = pyedmcl.recurrence_plot(
    piece, piece[::EVERY], pixels=(20, 20), **recurrence
).density
error = abs(reduced - whole).mean() / whole.mean()
print(f"a pixel of the reduced image is wrong by {error:.1%} of the mean")

# %% [markdown]
# ## What makes stretches alike?
# Pixels are compared by the growth rates of their two stretches: nearly equal ones, and
# clearly different ones.

# %%
rate = growth[: PIXELS * (N // PIXELS)].reshape(PIXELS, -1).mean(axis=1)
difference = abs(rate[:, None] - rate[None, :])
pixel = np.arange(PIXELS)
apart = abs(pixel[:, None] - pixel[None, :]) > PIXELS // 10  # not merely near in time
alike, unlike = (
    density[apart & (difference < 0.05)].mean(),
    density[apart & (difference > 0.3)].mean(),
)
print(f"growth rates within 0.05: {alike:.2%} recur; more than 0.3 apart: {unlike:.3%}")

# %% [markdown]
# ## The picture
# Dark is often. The scale is logarithmic, since calm times recur far more often than
# chaotic ones.

# %% tags=["hide-input"]
plt.rcParams.update({"axes.titlelocation": "left"})
figure, axes = plt.subplot_mosaic(
    "aac;bbc;bbd",
    figsize=(9, 8.2),
    layout="constrained",
    height_ratios=[1, 1.2, 2.2],
    gridspec_kw={"width_ratios": [1, 1, 0.95]},
)
millions = N / 1e6

ax = axes["a"]
some = rng.integers(0, N, 15_000)  # at random, for the same reason as EVERY is odd
ax.plot(some / 1e6, x[some], ",", color="#21526b", alpha=0.7)
ax.set(
    title="a  The population, 15,000 of its values", ylabel="size", xlim=(0, millions)
)
ax.spines[["top", "right"]].set_visible(False)

ax = axes["b"]
floor = 1e-5
image = ax.imshow(
    np.maximum(density, floor),
    cmap="Greys",
    norm="log",
    vmin=floor,
    vmax=0.5,
    origin="lower",
    extent=(0, millions, 0, millions),
    aspect="auto",
)
ax.set(
    title=f"b  Recurrences of {N:,} points",
    xlabel="time (million steps)",
    ylabel="time (million steps)",
)
figure.colorbar(
    image,
    ax=ax,
    label="share of cells that recur",
    orientation="horizontal",
    shrink=0.8,
)

zooms = (
    ("c", int(np.argmax(growth)), "c  200 chaotic steps"),
    ("d", int(np.argmin(growth)), "d  200 calm steps"),
)
for name, begin, title in zooms:
    close = pyedmcl.recurrence_plot(
        states[begin : begin + 200], embedded=True, radius=0.1 * x.std()
    )
    axes[name].imshow(
        close.matrix, cmap="Greys", origin="lower", extent=(0, 200, 0, 200)
    )
    axes[name].set(title=title, xlabel="steps")
figure.savefig("million_points.png", dpi=200)
plt.show()

# %% [markdown]
# ## The sentence

# %% tags=["hide-input"]
sentence = (
    f"In a series of {N:,} points, of which {pairs:.1e} pairs of states were "
    "compared, stretches with nearly equal growth rates (within 0.05) share "
    f"{alike / unlike:,.0f} times as many recurrences ({alike:.2%} of pairs) as those "
    f"whose rates differ by more than 0.3 ({unlike:.3%}), however far apart in time "
    "they lie."
)
print(fill(sentence, 88))
