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
# **Question.** Nutrients, algae, grazers and jellyfish were measured every month for
# forty years. All four rise and fall with the seasons. Which of them drive each other,
# and which only follow the same calendar?
#
# The table is simulated, so that the truth is known: nutrients drive algae, algae drive
# grazers, and jellyfish live by themselves. Put your own table in the place of
# `plankton`; everything below stays as it is.

# %% tags=["hide-input"]
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pyedmcl

rng = np.random.default_rng(0)
n_months = 480
state = np.empty((n_months + 100, 4))
state[0] = rng.uniform(0.2, 0.8, 4)
for t in range(1, len(state)):
    n, a, g, j = state[t - 1]
    alone = 3.8 - 3.8 * n, 3.7 - 3.4 * a, 3.7 - 3.4 * g, 3.75 - 3.75 * j
    growth = np.array(alone) - 0.35 * np.array([0, n, a, 0])
    state[t] = np.clip(state[t - 1] * growth, 0.001, 0.999)

own = state[100:]  # the first 100 months are left out, so that the start is forgotten
own = (own - own.mean(axis=0)) / own.std(axis=0)
season = np.sqrt(2) * np.sin(2 * np.pi * np.arange(n_months) / 12)
values = own + 0.6 * season[:, None] + 0.05 * rng.standard_normal(own.shape)
months = pd.date_range("1985-01-01", periods=n_months, freq="MS")
plankton = pd.DataFrame(
    values, index=months, columns=["nutrients", "algae", "grazers", "jellyfish"]
)

# %% [markdown]
# ## Correlation does not tell
# All pairs are correlated, because all series follow the season.

# %%
plankton.corr().round(2)

# %% [markdown]
# ## What the package remarks before anything is computed
# `check` reads the table as it is, and names the common season.

# %%
print(pyedmcl.check(plankton))

# %% [markdown]
# ## Skill that grows is no proof either
# If algae drive grazers, the states of the grazers estimate the algae, and do it better
# the more of them are known. But skill grows for jellyfish, too, which nothing drives:
# a season that both share is recovered better from a longer library.

# %%
growth = {
    name: pyedmcl.ccm(plankton[name], plankton["algae"], seed=1)
    for name in ("grazers", "jellyfish")
}
for name, result in growth.items():
    print(f"{name} estimate algae: skill {result.mean[0][[0, -1]].round(2)}")

# %% [markdown]
# ## One call for a verdict
# `causal_network` takes the common season away, compares each skill with surrogates,
# asks whether it grows, which lag is best, and whether a third series explains the
# link. An indirect link leads through another series. An unordered one may run either
# way.

# %%
found = pyedmcl.causal_network(plankton, seed=1)
table = found.to_frame()
table[["cause", "effect", "verdict", "rho", "q_value", "other"]].head(6).round(3)

# %%
print(fill(found.statement("nutrients", "grazers"), 88))

# %% [markdown]
# ## The picture

# %%
figure, axes = plt.subplot_mosaic("ac;bc", figsize=(9, 5.4), layout="constrained")
plankton.iloc[-96:].add([15, 10, 5, 0]).plot(ax=axes["a"], lw=1, legend=False)
axes["a"].set_yticks([15, 10, 5, 0], plankton.columns)
axes["a"].set(title="The last eight years")
for name, result in growth.items():
    axes["b"].plot(
        result.lib_sizes, result.mean[0], "o-", label=f"{name} estimate algae"
    )
axes["b"].set(title="Both grow", xlabel="months in the library", ylabel="skill rho")
axes["b"].legend(frameon=False)
found.plot(ax=axes["c"], title="Links beyond the season")
figure.savefig("plankton.png", dpi=200)
plt.show()

# %% [markdown]
# ## The sentence

# %% tags=["hide-input"]
direct = table[table["verdict"] == "direct"]
indirect = table[table["verdict"] == "indirect"]
arrows = [f"{row.cause} drive {row.effect}" for row in direct.itertuples()]
shared = growth["jellyfish"].mean[0][-1]
sentence = (
    f"Of {len(table)} possible links among {len(plankton.columns)} series over "
    f"{n_months} months, {len(direct)} are direct: {' and '.join(arrows)} (rho at "
    f"least {direct['rho'].min():.2f}, q ≤ {direct['q_value'].max():.3f}). Jellyfish, "
    f"whose states estimate algae with rho = {shared:.2f} by their common season, are "
    "linked to nothing."
)
print(fill(sentence, 88))
