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
# # Plankton: linked, or only sharing a season?
#
# **Question.** Algae, grazers and jellyfish were counted every month for thirty years.
# All three rise and fall with the seasons. Which of them drive each other, and which
# only follow the same calendar?
#
# The counts are simulated, so that the truth is known: algae and grazers act on each
# other, jellyfish live by themselves. Put your own table in the place of `plankton`;
# everything below stays as it is.

# %% tags=["hide-input"]
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pyedmcl

rng = np.random.default_rng(2)
n_months = 360
state = np.empty((n_months + 100, 3))
state[0] = rng.uniform(0.2, 0.8, 3)
for t in range(1, len(state)):
    a, g, j = state[t - 1]
    growth = np.array([3.8 - 3.8 * a - 0.2 * g, 3.6 - 3.6 * g - 0.4 * a, 3.7 - 3.7 * j])
    state[t] = np.clip(
        state[t - 1] * growth * np.exp(0.01 * rng.standard_normal(3)), 0.001, 0.999
    )

own = state[100:]  # the first 100 months are left out, so that the start is forgotten
own = (own - own.mean(axis=0)) / own.std(axis=0)
season = np.sqrt(2) * np.sin(2 * np.pi * np.arange(n_months) / 12)
values = own + 0.9 * season[:, None] + 0.1 * rng.standard_normal(own.shape)
months = pd.date_range("1990-01-01", periods=n_months, freq="MS")
plankton = pd.DataFrame(values, index=months, columns=["algae", "grazers", "jellyfish"])

# %% [markdown]
# ## Correlation does not tell
# All three pairs are correlated, because all three follow the season.

# %%
plankton.corr().round(2)

# %% [markdown]
# ## What the package remarks before anything is computed
# `check` reads the table as it is, and names the common season.

# %%
remarks = pyedmcl.check(plankton)
print(remarks)

# %% [markdown]
# ## How many months make a state?
# Each series predicts itself one month ahead from 1, 2, ... past values. The best
# number of values is its embedding dimension E.

# %%
dimension = pyedmcl.embed_dimension(plankton, E_max=8)
E = int(dimension.E.max())
print(f"best E: {dimension.E.tolist()} of {dimension.names}; E = {E} is taken for all")

# %% [markdown]
# ## Convergence
# If algae drive grazers, the states of the grazers estimate the algae, and do it better
# the more of them are known. Here skill grows for jellyfish, too: a season that both
# share is recovered better from a longer library. So convergence alone is no proof
# either.

# %%
pairs = [("algae", "grazers"), ("grazers", "jellyfish"), ("algae", "jellyfish")]
growth = {
    pair: pyedmcl.ccm(*(plankton[name] for name in pair), E=E, sample=100, seed=1)
    for pair in pairs
}
for result in growth.values():
    for (library, target), test in zip(result.links, result.convergence, strict=True):
        print(f"{library:>9} estimate {target:<9}: skill grows by {test.gain:.2f}")

# %% [markdown]
# ## Against surrogates that keep the season
# A seasonal surrogate of the algae has their mean year, and shuffled deviations from
# it. It is linked to nothing but the calendar. A skill that such surrogates reach as
# well is owed to the calendar; 999 of them are tried in each direction, and the six
# p-values are adjusted together for their number.

# %%
tests = [
    pyedmcl.ccm_significance(
        *(plankton[name] for name in pair),
        E=E,
        surrogate="seasonal",
        period=12,
        n=999,
        seed=1,
    )
    for pair in pairs
]
table = pd.concat([test.to_frame() for test in tests], ignore_index=True)
table["q_value"] = pyedmcl.false_discovery(table["p_value"])
table[["cause", "effect", "rho", "surrogates_q95", "p_value", "q_value"]].round(3)

# %% [markdown]
# ## The picture

# %% tags=["hide-input"]
BLUE, RED, GREY = "#21526b", "#d1495b", "#b8b8b8"
plt.rcParams.update(
    {"axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left"}
)
figure, axes = plt.subplot_mosaic(
    "aa;bc", figsize=(8.5, 6.4), layout="constrained", height_ratios=[1, 1.4]
)

ax = axes["a"]
for name, colour, shift in zip(
    plankton, (BLUE, RED, "#e69f00"), (0, -5, -10), strict=True
):
    ax.plot(
        plankton.index[-96:], plankton[name].iloc[-96:] + shift, color=colour, lw=1.2
    )
    ax.text(plankton.index[-98], shift, name, color=colour, ha="right", va="center")
ax.set(yticks=[], title="a  The last eight of thirty years")
ax.spines["left"].set_visible(False)

ax = axes["b"]
for pair, colour, mark in ((pairs[0], BLUE, "o"), (pairs[1], GREY, "s")):
    result = growth[pair]
    library, target = result.links[1]
    low, high = result.quantiles((0.05, 0.95))[1].T
    ax.fill_between(result.lib_sizes, low, high, color=colour, alpha=0.25, lw=0)
    ax.plot(
        result.lib_sizes,
        result.mean[1],
        color=colour,
        marker=mark,
        ms=4,
        label=f"{library} estimate {target}",
    )
ax.set(
    xlabel="months in the library",
    ylabel="cross-map skill rho",
    title="b  Both converge",
    ylim=(0, 1),
)
ax.legend(frameon=False, loc="lower right")

ax = axes["c"]
chance = np.concatenate([test.surrogates for test in tests])
rows = np.arange(len(table))
ax.hlines(rows, chance.min(axis=1), chance.max(axis=1), color=GREY, lw=1)
ax.hlines(rows, *np.quantile(chance, (0.05, 0.95), axis=1), color="#dddddd", lw=9)
linked = table["q_value"] <= 0.05
ax.scatter(table["rho"], rows, c=np.where(linked, RED, "black"), zorder=3, s=30)
ax.set_yticks(rows, [f"{row.cause} → {row.effect}" for row in table.itertuples()])
ax.set(xlabel="cross-map skill rho", title="c  Only one pair beats the season")
ax.plot([], [], "o", color=RED, label="q ≤ 0.05")
ax.plot([], [], "o", color="black", label="not significant")
ax.plot(
    [], [], color="#dddddd", lw=9, solid_capstyle="butt", label="90 % of surrogates"
)
ax.set_ylim(5.5, -0.5)
ax.legend(
    frameon=False,
    loc="upper right",
    bbox_to_anchor=(1.03, -0.15),
    ncols=3,
    columnspacing=1,
)
figure.savefig("plankton.png", dpi=200)
plt.show()

# %% [markdown]
# ## The sentence

# %% tags=["hide-input"]
found_names = sorted(
    {tuple(sorted((row.cause, row.effect))) for row in table[linked].itertuples()}
)
weakest, strongest_other = table[linked]["rho"].min(), table[~linked]["rho"].max()
sentence = (
    f"Of six possible links among {', '.join(plankton)} over {n_months} months, "
    f"{linked.sum()} exceed {tests[0].n} seasonal surrogates (q ≤ "
    f"{table[linked]['q_value'].max():.3f}): "
    f"{'; '.join(' and '.join(pair) for pair in found_names)} drive each other (rho "
    f"at least {weakest:.2f}), while a skill of up to {strongest_other:.2f} between "
    "the other species is no more than their common season gives (q ≥ "
    f"{table[~linked]['q_value'].min():.2f})."
)
print(fill(sentence, 88))
