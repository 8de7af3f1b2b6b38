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
# # From one GPU to a SLURM array
#
# **Question.** A map of all pairs takes too long on one device. What changes when many
# machines compute it, and does its answer?
#
# Nothing but the command line changes: processes that see one folder join in one map.
# There is no scheduler of ours, no network and no lock; a process that is killed loses
# the block it was at. This notebook shows the job script, then does the same with two
# processes on this machine.

# %%
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

import pyedmcl
from pyedmcl.simulate import coupled_maps, link_auc

folder = tempfile.TemporaryDirectory()
work = Path(folder.name)
network = coupled_maps(n_series=300, n_steps=1200, seed=3)
np.savetxt(
    work / "data.csv",
    network.values,
    fmt="%.6f",
    delimiter=",",
    header=",".join(network.names),
    comments="",
)

# %% [markdown]
# ## On one device
# In Python `pyedmcl.xmap(data, E=3, out="one.zarr")`; with `device="gpus"` all GPUs of
# the machine. What is written can be continued by the same call, whatever ended it.

# %%
COMMAND = "xmap data.csv --E 3 -o {out} --quiet"


def start(options, **environment):
    """A process of its own; in a shell: pyedmcl ..."""
    words = [sys.executable, "-m", "pyedmcl", *options.split()]
    return subprocess.Popen(words, cwd=work, env={**os.environ, **environment})


def finish(*processes):
    assert [process.wait() for process in processes] == [0] * len(processes)


finish(start(COMMAND.format(out="one.zarr")))

# %% [markdown]
# ## On a cluster: an array of jobs
# This is the whole job script. Each task takes a block of the map that nobody has
# taken, computes it and takes the next. `--requeue` is safe: a task that is started
# again finds what is left. Begin with four tasks or with four hundred, add some while
# others run, mix kinds of GPUs: the map has the same bits.

# %%
TASKS = 2
script = f"""#!/bin/bash
#SBATCH --job-name=map
#SBATCH --array=1-{TASKS}
#SBATCH --gpus-per-task=1
#SBATCH --time=01:00:00
#SBATCH --requeue
srun pyedmcl {COMMAND.format(out="map.zarr")} --join --device gpu
"""
print(script)

# %% [markdown]
# ## The same here, with two processes
# SLURM tells a task its number; here it is set by hand. Devices are those of this
# machine.

# %%
tasks = [
    start(
        COMMAND.format(out="map.zarr") + " --join",
        SLURM_ARRAY_TASK_ID=str(number),
        SLURM_ARRAY_TASK_MIN="1",
        SLURM_ARRAY_TASK_COUNT=str(TASKS),
    )
    for number in range(1, TASKS + 1)
]
finish(*tasks)
print(
    subprocess.check_output(
        [sys.executable, "-m", "pyedmcl", "status", "map.zarr"], cwd=work, text=True
    )
)

# %% [markdown]
# ## Who has done what, and is it the same map?
# The store is a Zarr array, a chunk for each block of rows, with a journal that names
# the writer of each. The map opens like any other result.

# %%
store = work / "map.zarr" / "rho"
journal = [
    json.loads(line) for line in (store / "blocks.jsonl").read_text().splitlines()
]
grid = json.loads((store / "zarr.json").read_text())["chunk_grid"]["configuration"]
rows_of_a_block = grid["chunk_shape"][0]
writers = sorted({entry["writer"] for entry in journal})
blocks = {entry["block"]: writers.index(entry["writer"]) for entry in journal}
shares = [list(blocks.values()).count(number) for number in range(len(writers))]

shared = pyedmcl.open_result(work / "map.zarr")
alone = pyedmcl.open_result(work / "one.zarr")
rho = np.asarray(shared.rho)
same_bytes = rho.tobytes() == np.asarray(alone.rho).tobytes()
auc = link_auc(rho, network.links)
print(f"blocks of each process: {shares}; the same bytes as one process: {same_bytes}")

# %% [markdown]
# ## The picture

# %% tags=["hide-input"]
BLUE, RED, GREY = "#21526b", "#d1495b", "#b8b8b8"
plt.rcParams.update({"axes.titlelocation": "left"})
figure, axes = plt.subplots(
    1, 2, figsize=(9, 4.4), layout="constrained", width_ratios=[1.25, 1]
)

ax = axes[0]
off = ~np.eye(len(rho), dtype=bool)
shown = np.where(off, rho, np.nan)  # a series maps itself: that says nothing
image = ax.imshow(shown, cmap="Greys", vmin=0, vmax=1, interpolation="none")
strip = ax.inset_axes([-0.1, 0, 0.05, 1])
of_row = [blocks[row // rows_of_a_block] for row in range(len(rho))]
strip.imshow(
    np.array(of_row)[:, None],
    cmap="RdBu_r",
    vmin=-0.4,
    vmax=1.4,
    aspect="auto",
    interpolation="none",
)
strip.set(xticks=[], ylabel="effect (row); the strip shows which process")
ax.set(
    yticks=[],
    xlabel="cause (column)",
    title=f"a  {rho.size:,} cross maps by {len(writers)} processes",
)
figure.colorbar(image, ax=ax, label="cross-map skill rho", shrink=0.8)

ax = axes[1]
linked = network.links.T  # rows are effects, as in the map
bins = np.linspace(-0.2, 1, 49)
for chosen, colour, name in ((off & ~linked, GREY, "no link"), (linked, RED, "link")):
    ax.hist(
        rho[chosen],
        bins=bins,
        density=True,
        color=colour,
        alpha=0.7,
        label=f"{name} ({chosen.sum():,} pairs)",
    )
ax.set(
    xlabel="cross-map skill rho",
    title="b  Skill of linked and other pairs",
    yticks=[],
)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
figure.savefig("slurm.png", dpi=200)
plt.show()

# %% [markdown]
# ## The sentence

# %% tags=["hide-input"]
sentence = (
    f"{rho.size:,} cross maps were computed by {len(writers)} processes that shared "
    f"nothing but a folder ({' and '.join(map(str, shares))} of {len(blocks)} "
    f"blocks); the map has {'the same' if same_bytes else 'other'} bytes as that of "
    f"one process, and ranks the {network.links.sum()} true links with an area under "
    f"the ROC curve of {auc:.3f}."
)
print(fill(sentence, 88))
folder.cleanup()
