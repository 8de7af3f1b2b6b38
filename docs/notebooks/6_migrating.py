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
# # From pyEDM, kEDM and PyRQA to here
#
# **Question.** A script was written for pyEDM, kEDM or PyRQA. What has to be changed to
# run it on any device, and are the numbers the same?
#
# There are two ways. An *adapter* has the names, arguments and returns of the package:
# one line of imports changes. A *native* call says the same in the words of pyedmcl,
# and can do more. This notebook makes both, side by side, and compares all numbers.
# None of the three packages needs to be installed.
#
# | package | in the script | instead |
# | --- | --- | --- |
# | pyEDM | `import pyEDM as EDM` | `import pyedmcl.compat.pyedm as EDM` |
# | kEDM | `import kedm` | `import pyedmcl.compat.kedm as kedm` |
# | PyRQA | `import pyrqa.settings` | `import pyedmcl.compat.pyrqa.settings` |

# %%
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import pyedmcl
from pyedmcl.compat import kedm
from pyedmcl.compat import pyedm as EDM  # noqa: N812
from pyedmcl.compat.pyrqa.analysis_type import Classic
from pyedmcl.compat.pyrqa.computation import RQAComputation
from pyedmcl.compat.pyrqa.metric import EuclideanMetric
from pyedmcl.compat.pyrqa.neighbourhood import FixedRadius
from pyedmcl.compat.pyrqa.settings import Settings
from pyedmcl.compat.pyrqa.time_series import TimeSeries
from pyedmcl.simulate import coupled_maps

network = coupled_maps(n_series=8, n_steps=500, seed=2)
frame = pd.DataFrame(network.values.astype(float), columns=list(network.names))
cause, effect = (network.names[i] for i in np.argwhere(network.links)[1])
x, y = frame[effect], frame[cause]
compared = []  # (what, largest difference)

# %% [markdown]
# ## pyEDM: simplex projection
# Rows of pyEDM are counted from 1 and ranges include their ends. Here rows are counted
# from 0, and ranges are as Python's: "1 300" becomes `(0, 300)`. pyEDM's lags are
# negative (`tau=-1`), ours positive (`tau=1`).

# %%
table = frame.copy()
table.insert(0, "time", np.arange(1, len(frame) + 1))
there = EDM.Simplex(
    dataFrame=table,
    lib="1 300",
    pred="301 500",
    columns=effect,
    target=cause,
    E=3,
    tau=-1,
    Tp=1,
)
there = there.dropna()

here = pyedmcl.simplex(
    x,
    target=y,
    E=3,
    tau=1,
    Tp=1,
    lib_range=(0, 300),
    pred_range=(300, 500),
    dtype="float64",
)
inside = ~np.isnan(here.observed)
compared.append(
    (
        "Simplex: predictions",
        abs(there["Predictions"].to_numpy() - here.predicted[inside]).max(),
    )
)
there_error = EDM.ComputeError(there["Observations"], there["Predictions"])
print(f"rho {there_error['rho']:.6f} and {here.rho:.6f}")

# %% [markdown]
# ## pyEDM: S-map
# A sweep over theta is one call here; slopes and skill come with it. By default pyEDM's
# fits leave out the farthest row of the library, those here take all: `knn=` makes them
# equal. Of rows 0 to 299, the first two have no state, and the last has no target.

# %%
thetas = (0, 1, 2, 4, 8)
options = {
    "lib": "1 300",
    "pred": "301 500",
    "columns": effect,
    "target": effect,
    "E": 3,
    "embedded": False,
}
there_skill = []
for theta in thetas:
    found = EDM.SMap(dataFrame=table, theta=theta, **options)["predictions"].dropna()
    there_skill.append(
        EDM.ComputeError(found["Observations"], found["Predictions"])["rho"]
    )

sweep = pyedmcl.smap(
    x,
    E=3,
    theta=thetas,
    knn=300 - 3 - 1,
    lib_range=(0, 300),
    pred_range=(300, 500),
    dtype="float64",
)
compared.append(
    ("SMap: skill over theta", abs(np.array(there_skill) - sweep.rho).max())
)
print(np.round(there_skill, 4), np.round(sweep.rho, 4))

# %% [markdown]
# ## pyEDM: convergent cross mapping
# The adapter draws the sub-libraries that pyEDM draws. A native call draws others,
# gives each of them (not their mean only), and tests whether skill grows. So the two
# agree as two samples do.

# %%
sizes = (10, 20, 40, 80, 160, 320, 480)
there_ccm = EDM.CCM(
    dataFrame=table,
    columns=effect,
    target=cause,
    libSizes=" ".join(map(str, sizes)),
    sample=100,
    E=3,
    Tp=0,
    seed=1,
)

both = pyedmcl.ccm(x, y, E=3, lib_sizes=sizes, sample=100, seed=1, dtype="float64")
means = there_ccm[[f"{effect}:{cause}", f"{cause}:{effect}"]].to_numpy().T
standard_error = both.rho.std(axis=2, ddof=1) * np.sqrt(2 / 100)
away = (
    abs(means - both.mean)[:, :-2] / standard_error[:, :-2]
)  # the largest libraries hardly vary
print(f"means of 100 samples differ by {away.mean():.1f} standard errors on average")
print(f"skill of {effect} estimating {cause} grows by {both.convergence[0].gain:.2f}")

# %% [markdown]
# ## kEDM: embedding dimensions and the map of all pairs

# %%
there_E = [kedm.edim(network.values[:, i], E_max=8) for i in range(8)]
there_map = kedm.xmap(network.values, there_E)

here_E = pyedmcl.embed_dimension(frame, E_max=8).E
here_map = pyedmcl.xmap(
    frame, E=here_E
)  # also: out="map.zarr", several devices, folds, significance
compared.append(("edim: best E", float(abs(np.array(there_E) - here_E).max())))
compared.append(("xmap: skill of all pairs", abs(there_map - here_map.rho).max()))
here_map.edges(top=3)

# %% [markdown]
# ## PyRQA: recurrence quantification
# Settings become arguments; measures have the names of the literature. `radius=` takes
# several radii in one pass, and `threshold="recurrence_rate"` a rate instead.

# %%
radius = 0.15
settings = Settings(
    TimeSeries(x, embedding_dimension=3, time_delay=1),
    analysis_type=Classic,
    neighbourhood=FixedRadius(radius),
    similarity_measure=EuclideanMetric,
    theiler_corrector=1,
)
there_rqa = RQAComputation.create(settings).run()

here_rqa = pyedmcl.rqa(x, m=3, tau=1, radius=radius, theiler=1)
measures = {
    "RR": there_rqa.recurrence_rate,
    "DET": there_rqa.determinism,
    "LAM": there_rqa.laminarity,
    "ENTR": there_rqa.entropy_diagonal_lines,
    "L": there_rqa.average_diagonal_line,
    "TT": there_rqa.trapping_time,
}
compared.append(
    (
        "RQA: six measures",
        max(abs(value - here_rqa[name]) for name, value in measures.items()),
    )
)

# %% [markdown]
# ## Side by side

# %%
pd.DataFrame(
    compared, columns=["script and native call", "largest difference"]
).set_index("script and native call")

# %% [markdown]
# ## The picture
# Adapter against native call: everything lies on the diagonal, but for the means of
# other random samples, which lie in their band.

# %% tags=["hide-input"]
BLUE, RED, GREY = "#21526b", "#d1495b", "#b8b8b8"
plt.rcParams.update(
    {"axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False}
)
figure, axes = plt.subplots(2, 2, figsize=(8, 7.4), layout="constrained")


def identity(ax, first, second, title, label):
    ax.axline((0, 0), slope=1, color=GREY, lw=0.8, zorder=0)
    ax.plot(first, second, "o", color=BLUE, ms=4, alpha=0.6, mec="none")
    ax.set(
        title=title,
        xlabel=f"{label}, adapter",
        ylabel=f"{label}, native",
        aspect="equal",
    )


identity(
    axes[0, 0],
    there["Predictions"],
    here.predicted[inside],
    "a  pyEDM: Simplex",
    "prediction",
)

ax = axes[0, 1]
for place, colour in enumerate((BLUE, RED)):
    library, target = both.links[place]
    low, high = both.quantiles((0.05, 0.95))[place].T
    ax.fill_between(sizes, low, high, color=colour, alpha=0.2, lw=0)
    ax.plot(
        sizes,
        both.mean[place],
        color=colour,
        label=f"{library} estimates {target}, native",
    )
    ax.plot(
        sizes, means[place], "o", color=colour, mfc="white", ms=5, label="... adapter"
    )
ax.set(
    xscale="log",
    xlabel="library size (rows)",
    ylabel="cross-map skill rho",
    title="b  pyEDM: CCM",
)
ax.set_xticks((10, 30, 100, 300), ("10", "30", "100", "300"))
ax.minorticks_off()
ax.legend(frameon=False, fontsize=8)

off = ~np.eye(8, dtype=bool)
identity(
    axes[1, 0],
    there_map[off],
    here_map.rho[off],
    "c  kEDM: xmap, all pairs",
    "skill rho",
)
ax = axes[1, 1]
identity(
    ax,
    list(measures.values()),
    [here_rqa[name] for name in measures],
    "d  PyRQA: measures",
    "value",
)
for name, value in measures.items():
    ax.annotate(
        name, (value, value), xytext=(7, -9), textcoords="offset points", fontsize=8
    )
ax.set(xscale="log", yscale="log")
figure.savefig("migrating.png", dpi=200)
plt.show()

# %% [markdown]
# ## The sentence

# %% tags=["hide-input"]
n_values = inside.sum() + len(thetas) + len(there_E) + there_map.size + len(measures)
worst = max(value for _, value in compared)
sentence = (
    f"Of {n_values} values computed with the calls of pyEDM, kEDM and PyRQA and with "
    "native ones (predictions, skill, embedding dimensions, recurrence measures), "
    f"none differs by more than {worst:.0e}; means of convergent cross mapping, whose "
    f"random sub-libraries differ, are {away.mean():.1f} standard errors apart on "
    "average."
)
print(fill(sentence, 88))
