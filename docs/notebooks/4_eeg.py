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
# # EEG: does a discharge recur more than its spectrum explains?
#
# **Question.** Thirty recordings are cut around the onset of a spike-and-wave
# discharge. Brain activity recurs more regularly during the discharge. Is this only its
# rhythm, which a spectrum shows as well, or is there more in it?
#
# Each recording is cut into overlapping windows, the recurrences of each window are
# quantified, and means over recordings get confidence bands by bootstrap. Surrogates of
# each window, with its spectrum and its values, say what rhythm alone would give.
#
# The recordings are simulated: a background with an alpha rhythm, and from second 0 to
# second 6 a spike and a wave three times a second. Put your own array (recordings,
# samples) in the place of `eeg`.

# %% tags=["hide-input"]
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np

import pyedmcl

RATE, BEFORE, AFTER, RECORDINGS = 128, 5, 11, 30  # samples a second, seconds, seconds
rng = np.random.default_rng(7)
n = RATE * (BEFORE + AFTER)
seconds = np.arange(n) / RATE - BEFORE
frequency = np.fft.rfftfreq(n, 1 / RATE)
amplitude = 1 / np.maximum(frequency, 1) ** 0.8 + 0.6 * np.exp(
    -(((frequency - 10) / 1.7) ** 2)
)
amplitude[0] = 0


def recording():
    background = np.fft.irfft(
        amplitude * np.exp(2j * np.pi * rng.random(frequency.size)), n
    )
    phase = (
        np.cumsum(2 * np.pi / RATE * (3 + np.cumsum(0.005 * rng.standard_normal(n))))
        + 6.28 * rng.random()
    )
    cycle = phase % (2 * np.pi)
    discharge = (
        2.2 * np.exp(-(((cycle - 1) / 0.25) ** 2)) - 1.56 * np.sin(cycle / 2 + 0.3) ** 2
    )
    onset, end = 0.2 * rng.standard_normal(), 6 + 0.5 * rng.standard_normal()
    on = 1 / (1 + np.exp(-(seconds - onset) / 0.15)) - 1 / (
        1 + np.exp(-(seconds - end) / 0.2)
    )
    return background / background.std() + 2.5 * on * (discharge - discharge.mean())


eeg = np.array([recording() for _ in range(RECORDINGS)])

# %% [markdown]
# ## Windows
# Two seconds each, a quarter of a second apart: an array (recordings, windows,
# samples).

# %%
width, stride = 2 * RATE, RATE // 4
starts = np.arange(0, n - width + 1, stride)
windows = np.lib.stride_tricks.sliding_window_view(eeg, width, axis=1)[:, starts]
middle = seconds[starts] + width / RATE / 2
print(windows.shape)

# %% [markdown]
# ## Recurrence of all windows in one call
# A state is made of five values, 6 samples apart. Two states recur if they are nearer
# than one standard deviation of their window, and are not neighbours in time
# (`theiler`). Determinism is the share of recurrences that lie on diagonal lines:
# stretches in which the signal repeats what it did before.

# %%
embedding = {"m": 5, "tau": 6, "radius": 1.0, "radius_unit": "std", "theiler": 30}


def determinism(array):
    return (
        pyedmcl.rqa_batch(array, axis=-1, **embedding)
        .measure("DET")
        .reshape(array.shape[:-1])
    )


observed = determinism(windows)

# %% [markdown]
# ## The same of surrogates
# One surrogate of each window ("iaaft": the same values and, nearly, the same
# spectrum), each with a seed of its own, so that they are as independent of each other
# as the recordings are.

# %%
flat = windows.reshape(-1, width)
same_spectrum = np.array(
    [
        pyedmcl.surrogate(x, "iaaft", n=1, seed=number)[0]
        for number, x in enumerate(flat)
    ]
)
explained = determinism(same_spectrum.reshape(windows.shape))

# %% [markdown]
# ## Confidence bands
# Recordings are drawn with replacement 2,000 times; 95 % of the means lie in the band.

# %%
draws = rng.integers(0, RECORDINGS, (2000, RECORDINGS))


def band(values):
    """Mean over recordings with its 95 % band; ``values`` is (recordings, ...)."""
    means = values[draws].mean(axis=1)
    return values.mean(axis=0), *np.quantile(means, (0.025, 0.975), axis=0)


during = (middle > 1.5) & (middle < 4.5)
before = middle < -1.5
rest, rest_low, rest_high = band(observed[:, before].mean(axis=1))
rise, rise_low, rise_high = band(observed[:, during].mean(axis=1))
excess, excess_low, excess_high = band((observed - explained)[:, during].mean(axis=1))
excess_rest, *excess_rest_band = band((observed - explained)[:, before].mean(axis=1))

# %% [markdown]
# ## The picture

# %% tags=["hide-input"]
BLUE, RED, GREY = "#21526b", "#d1495b", "#7d868b"
plt.rcParams.update(
    {"axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False}
)
figure, axes = plt.subplot_mosaic(
    "aab;aac;ddd", figsize=(9, 6.8), layout="constrained", height_ratios=[1, 1, 1.7]
)

ax = axes["a"]
for place in range(4):
    ax.plot(seconds, eeg[place] - 11 * place, color=BLUE, lw=0.5)
ax.axvspan(0, 6, color=RED, alpha=0.1, lw=0)
ax.set(
    title="a  Four of the recordings",
    xlabel="time (s)",
    xlim=(seconds[0], seconds[-1]),
    yticks=[],
)
ax.spines["left"].set_visible(False)
for name, moment, title in (
    ("b", -3.0, "b  One window before"),
    ("c", 3.0, "c  One within"),
):
    ax = axes[name]
    window = windows[0, np.argmin(abs(middle - moment))]
    plot = pyedmcl.recurrence_plot(window, **embedding)
    ax.imshow(
        plot.matrix,
        cmap="Greys",
        origin="lower",
        extent=(0, plot.matrix.shape[0] / RATE) * 2,
    )
    ax.set(title=title, ylabel="time (s)")
axes["c"].set_xlabel("time (s)")

ax = axes["d"]
for values, colour, name, line in (
    (observed, BLUE, "recordings", "-"),
    (explained, GREY, "surrogates", "--"),
):
    mean, low, high = band(values)
    ax.fill_between(middle, low, high, color=colour, alpha=0.25, lw=0)
    ax.plot(middle, mean, line, color=colour, label=name)
ax.axvspan(0, 6, color=RED, alpha=0.1, lw=0)
ax.text(
    3, 0.02, "discharge", color=RED, ha="center", transform=ax.get_xaxis_transform()
)
ax.set(
    title="d  Determinism, mean and 95 % band",
    xlabel="middle of the window (s)",
    ylabel="DET",
)
ax.set_xlim(middle[0], middle[-1])
ax.legend(frameon=False, loc="upper left")
figure.savefig("eeg.png", dpi=200)
plt.show()

# %% [markdown]
# ## The sentence

# %% tags=["hide-input"]
sentence = (
    f"In {RECORDINGS} recordings determinism rises from {rest:.2f} (95 % CI "
    f"{rest_low:.2f} to {rest_high:.2f}) before to {rise:.2f} ({rise_low:.2f} to "
    f"{rise_high:.2f}) within the discharge, where it exceeds that of surrogates with "
    f"the same spectrum by {excess:.2f} ({excess_low:.2f} to {excess_high:.2f}); "
    f"before, the difference is {excess_rest:.2f} ({excess_rest_band[0]:.2f} to "
    f"{excess_rest_band[1]:.2f})."
)
print(fill(sentence, 88))
