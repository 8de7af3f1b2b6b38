"""How often recurrence measures differ from surrogates at p <= 0.05, where nothing is to be found and where chaos is.

Run: python bench/rqa_significance.py [repetitions]
     python bench/rqa_significance.py --groups [repetitions]    # and how often two groups that do not differ do
"""

from __future__ import annotations

import sys
import warnings

import numpy as np

import pyedmcl

ROWS, SURROGATES = 400, 39


def autoregressive(rng: np.random.Generator, n: int, share: float, rows: int = ROWS) -> np.ndarray:
    """Series of which each value keeps a share of the one before."""
    noise = rng.standard_normal((n, rows + 100))
    for t in range(1, noise.shape[1]):
        noise[:, t] += share * noise[:, t - 1]
    return noise[:, 100:]


def logistic(rng: np.random.Generator, n: int) -> np.ndarray:
    """Chaotic series, with a tenth of noise."""
    x = np.empty((n, ROWS))
    x[:, 0] = rng.uniform(0.2, 0.8, n)
    for t in range(1, ROWS):
        x[:, t] = 3.9 * x[:, t - 1] * (1 - x[:, t - 1])
    return x + 0.1 * x.std() * rng.standard_normal(x.shape)


def groups(rng: np.random.Generator, repetitions: int) -> None:
    """Print the share of p <= 0.05 of ``pyedmcl.compare`` for 10 and 8 recordings of one kind, and for 12 pairs."""
    measures = ["determinism", "laminarity"]
    for paired, (one, other) in ((False, (10, 8)), (True, (12, 12))):
        series = autoregressive(rng, repetitions * (one + other), 0.7)[:, :150]
        own = np.repeat(rng.standard_normal((repetitions, one)), 150).reshape(repetitions * one, 150)
        if paired:  # what a subject has in both treatments
            series += 0.01 * np.arange(150) * np.concatenate([own, own])
        batch = pyedmcl.rqa_batch(list(series), m=2, radius=0.05, threshold="recurrence_rate")
        table = {name: np.array(batch.measure(name)) for name in measures}
        treatment, subject = np.repeat(["a", "b"], (one, other)), np.r_[:one, :other]
        found = []
        for at in range(repetitions):
            first, second = at * one, repetitions * one + at * other
            rows = np.r_[first : first + one, second : second + other]
            held = {name: values[rows] for name, values in table.items()} | {"treatment": treatment, "subject": subject}
            found.append(pyedmcl.compare(
                held, "treatment", pair="subject" if paired else None, measures=measures, n=399, seed=at
            ).p_value)  # fmt: skip
        shares = (np.array(found) <= 0.05).mean(axis=0)
        print(f"groups that do not differ, {'pairs' if paired else '10 and 8'}: " + ", ".join(
            f"{name} {share:.3f}" for name, share in zip(measures, shares, strict=True)))


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:] if word != "--groups"]
    n = numbers[0] if numbers else 200
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    if "--groups" in sys.argv:
        groups(rng, n)
        return
    systems = {
        "white noise": autoregressive(rng, n, 0.0), "autoregressive, 0.7": autoregressive(rng, n, 0.7),
        "exponential of autoregressive, 0.7": np.exp(autoregressive(rng, n, 0.7)), "logistic map": logistic(rng, n),
    }  # fmt: skip
    for name, repetitions in systems.items():
        for surrogate in ("iaaft", "phase", "shuffle"):
            # A window is a series of its own: all repetitions are tested in one call.
            tested = pyedmcl.rqa_significance(
                repetitions.ravel(), window=ROWS, radius=0.05, threshold="recurrence_rate", m=2, tau=1,
                surrogate=surrogate, n=SURROGATES, seed=1,
            )  # fmt: skip
            found = (tested.p_value <= 0.05).mean(axis=0)
            print(f"{name}, {surrogate}: " + ", ".join(
                f"{measure} {share:.3f}" for measure, share in zip(tested.measures, found, strict=True)))


if __name__ == "__main__":
    main()
