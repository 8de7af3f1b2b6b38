"""Folders of files of different runs, and folders that lead elsewhere: the right result, or it is said what is wrong.

Files are swapped, brought back from older copies, synchronized from folders of other runs, exchanged within, or
removed; in every place of every folder there may be a link, a pipe or a socket.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import warnings
from pathlib import Path

import numpy as np
import pytest
import tally
from hypothesis import given
from hypothesis import strategies as st
from jobs_in_folders import JOBS, N_QUESTIONS, stop_after
from store_helpers import tree

from pyedmcl.errors import PyedmclError, StoreError
from pyedmcl.jobs.status import Observer


class Runs:
    """Folders of finished and interrupted runs of a job, and what each answers; made once."""

    def __init__(self, job, root, device):
        self.job, self.device, self.folders, self.answers = job, device, {}, {}
        for question in range(N_QUESTIONS[job]):
            self.folders[question, "whole"] = folder = root / f"{question}-whole"
            self.answers[question] = self.call(folder, question)
            for parts in (1, 3):
                self.folders[question, f"part {parts}"] = folder = root / f"{question}-part-{parts}"
                with contextlib.suppress(KeyboardInterrupt):
                    self.call(folder, question, progress=stop_after(parts))

        # What is asked for, and library sizes that other calls have added to it, as they may.
        self.asked = {**self.answers[N_QUESTIONS[job] - 1], **self.answers[0]} if job == "ccm" else self.answers[0]
        self.answers["asked"] = self.asked

    def call(self, folder, question=0, **more):
        job = JOBS[self.job]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "nothing is significant")
            return job.values(job.call(folder, question, device=self.device, **more))


@pytest.fixture(scope="module")
def runs_of(one_device, tmp_path_factory):
    made = {}

    def of(job):
        if job not in made:
            made[job] = Runs(job, tmp_path_factory.mktemp(job), one_device)
        return made[job]

    return of


def same(found, answer):
    """Whether all that is found is that of an answer; a folder of library sizes may have fewer, which it names."""
    return all(name in answer and np.array_equal(found[name], answer[name], equal_nan=True) for name in found)


def part_of(found, answer):
    """Whether all that is known is that of an answer; an E of 0 was not found yet."""
    if not set(found) <= set(answer) or any(found[name].shape != answer[name].shape for name in found):
        return False
    unknown = {name: (found[name] == 0) if name == "E" else np.isnan(found[name]) for name in found}
    return all(((found[name] == answer[name]) | unknown[name]).all() for name in found)


def entries(folder):
    """Files and folders below a folder, by their paths in it."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def put(source, target):
    """A file or folder in place of what is there."""
    if target.is_dir():
        shutil.rmtree(target)
    elif target.exists():
        target.unlink()
    target.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copy2)(source, target)


def mixed(draw, runs, copy):
    """A folder of files of several runs at ``copy``; what was done."""
    base = runs.folders[0, draw(st.sampled_from(["whole", "whole", "part 1", "part 3"]))]
    donors = [folder for folder in runs.folders.values() if folder != base and folder.exists()]
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(base, copy) if base.exists() else copy.mkdir()
    done = []
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(["swap", "swap", "sync new", "sync all", "exchange", "copy within", "remove"]))
        donor = draw(st.sampled_from(donors))
        theirs, own = entries(donor), entries(copy)
        if kind == "swap":
            name = draw(st.sampled_from(theirs))
            with contextlib.suppress(OSError):  # a file is where a folder is to be
                put(donor / name, copy / name)
            done.append((kind, donor.name, name))
        elif kind.startswith("sync"):
            some = [name for name in theirs if (donor / name).is_file() and draw(st.booleans())]
            for name in some:
                if kind == "sync all" or not (copy / name).exists():
                    put(donor / name, copy / name)
            done.append((kind, donor.name, some))
        elif own:
            one = draw(st.sampled_from(own))
            alike = [
                name for name in own
                if (copy / name).is_dir() == (copy / one).is_dir() and Path(name).suffix == Path(one).suffix
                and not name.startswith(one) and not one.startswith(name)
            ]  # fmt: skip
            if kind == "remove" or not alike:
                shutil.rmtree(copy / one) if (copy / one).is_dir() else (copy / one).unlink()
                done.append(("remove", one))
                continue
            other = draw(st.sampled_from(alike))
            aside = copy / "aside"
            (copy / one).rename(aside)
            if kind == "exchange":
                (copy / other).rename(copy / one)
                aside.rename(copy / other)
            else:
                put(copy / other, copy / one)
                shutil.rmtree(aside) if aside.is_dir() else aside.unlink()
            done.append((kind, one, other))
    return base.name, done


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("job", JOBS)
def test_folders_of_files_of_several_runs(job, runs_of, tmp_path):
    runs, copy = runs_of(job), tmp_path / "copy"
    what = JOBS[job]

    @given(st.data())
    def case(data):
        done = mixed(data.draw, runs, copy)
        if what.opened is not None:
            try:
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    found = what.values(what.opened(copy))
            except PyedmclError as error:
                tally.count(f"mixed folders of {job}, opened", "refused")
                assert str(copy) in str(error), f"{done}: the message does not name the folder: {error}"
            else:
                right = [answer for answer in runs.answers.values() if part_of(found, answer)]
                assert right, f"{done}: opened, and wrong"
                whole = any(same(found, answer) for answer in right)
                empty = all(np.isnan(found[name]).all() for name in found if name != "E")  # as if just begun
                assert told or whole or empty or "part" in str(done), f"{done}: no word"
                tally.count(f"mixed folders of {job}, opened", "right")
        try:
            found = runs.call(copy)
        except StoreError as error:
            tally.count(f"mixed folders of {job}, continued", "refused")
            assert str(copy) in str(error), f"{done}: the message does not name the folder: {error}"
            return
        tally.count(f"mixed folders of {job}, continued", "right")
        assert set(found) == set(runs.answers[0]) and same(found, runs.answers[0]), f"{done}: continued, and wrong"
        assert same(runs.call(copy), runs.answers[0]), f"{done}: continued twice, and wrong"
        if what.opened is not None:
            again = what.values(what.opened(copy))
            assert part_of(again, runs.asked), f"{done}: opened again, and wrong"
            assert same({name: again[name] for name in found}, runs.answers[0]), f"{done}: opened again, and wrong"

    case()


PLANTED = ["link to a file", "link to a folder", "link to nothing", "link to a device", "pipe", "socket"]


def plant(kind, place, outside):
    """Something that is neither a file nor a folder."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(place.parent)  # whose whole path may be too long for a socket
        try:
            socket.socket(socket.AF_UNIX).bind(place.name)
        finally:
            os.chdir(here)
    else:
        targets = {"link to a file": "thesis.txt", "link to a folder": "", "link to nothing": "nothing"}
        place.symlink_to(outside / targets[kind] if kind in targets else os.devnull)


#: What is not there once a run has ended, and would be used by the next one.
LATER = [
    ".pyedmcl-join", ".pyedmcl-join/setup", ".pyedmcl-join/seed", ".pyedmcl-join/member-1", ".pyedmcl-join/block-0",
    ".pyedmcl-lock", "rho/journals", "rho/journals/1.jsonl", "rho/tuning", "rho/c.1.0",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("job", JOBS)
def test_no_link_in_a_folder_is_followed(job, runs_of, tmp_path):
    """In every place of a folder: it is refused, and nothing outside is changed or removed."""
    runs, what, copy, outside = runs_of(job), JOBS[job], tmp_path / "copy", tmp_path / "outside"
    outside.mkdir()
    # Names of ours, which would be removed or written over in a folder of ours.
    for name in ("thesis.txt", "c.0.0", "zarr.json", "1.jsonl", "block-0", "part-0-1.npz", "a" * 32 + ".json"):
        (outside / name).write_text("mine")
    before, afresh = tree(outside), {"resume": False, "join": False} if what.resumes else {}
    places = entries(runs.folders[0, "whole"])
    inner = {str(Path(place).parent) for place in places if place.count("/") == 1 and "zarr.json" in place}
    stores = [folder for folder in inner if job != "map"] + [""] * (job == "map")
    places += [name for name in LATER if not name.startswith("rho")]
    places += [str(Path(store, name)) for store in stores for name in LATER]

    @given(st.sampled_from(places), st.sampled_from(PLANTED), st.sampled_from(["open", "look", "go on", "afresh"]))
    def case(place, kind, then):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(runs.folders[0, "whole"], copy)
        plant(kind, copy / place, outside)
        calls = {
            "open": lambda: what.opened and what.opened(copy), "look": lambda: Observer(copy).look(),
            "go on": lambda: runs.call(copy), "afresh": lambda: runs.call(copy, **afresh),
        }  # fmt: skip
        try:
            calls[then]()
        except StoreError as error:
            assert str(copy) in str(error)
            tally.count("links, pipes and sockets in folders", "refused")
        else:
            assert then in ("open", "look"), f"a {kind} at {place} was used"
            tally.count("links, pipes and sockets in folders", "not looked at")
        assert tree(outside) == before, f"a {kind} at {place}: files of others were changed"
        assert sorted(path.name for path in outside.iterdir()) == sorted(before)

    case()
