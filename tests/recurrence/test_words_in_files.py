"""Words in files are categories of the commands of recurrence, and of nothing else."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from cli_helpers import inside

import pyedmcl
from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.files import read_series

WORDS = ["dog", "cat", "dog", "mouse", "cat", "dog", "the", "cat", "dog"]
OTHER = ["cat", "cat", "dog", "the", "a", "dog", "mouse", "cat", "mouse"]
MANY = [f"w{number}" for number in np.random.default_rng(3).integers(0, 30, 900)]


def read(tmp_path, text, name="words.txt", **options):
    path = tmp_path / name
    path.write_text(text)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", PyedmclWarning)
        series = read_series(path, categories=True, **options)
    return series, " | ".join(str(one.message) for one in told)


def lines(words):
    return "".join(f"{'' if word is None else word}\n" for word in words)


def words_of(series, name):
    column = series.values[:, series.names.index(name)]
    return [None if place != place else series.categories[name][int(place)] for place in column]


def rqa_of(one_device, path, *options):
    done = inside("rqa", path, "--radius", 0.5, "--json", "--device", one_device, *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["results"][0], done.stderr


def measures(one_device, *series, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PyedmclWarning)
        found = pyedmcl.rqa(*series, radius=0.5, device=one_device, **options)
    return {"radius": 0.5, **{name: None if value != value else value for name, value in found.to_dict().items()}}


@pytest.mark.parametrize("words", [WORDS, ["a", None, "b", "a", "b", "a"], MANY], ids=["words", "gap", "many"])
def test_a_file_of_words_is_a_series_and_its_first_word_is_data(tmp_path, one_device, words):
    series, told = read(tmp_path, lines(words))
    assert words_of(series, "x0") == words
    assert f"line 1 is data, as {words[0]!r} occurs again" in told
    assert f"{len(set(words) - {None}):,} different words" in told and "compared as equal or not" in told
    found, said = rqa_of(one_device, tmp_path / "words.txt")
    assert found == measures(one_device, words) == measures(one_device, series)
    assert "different words" in said and "skill" not in said


@pytest.mark.parametrize("header", ["false", "none", None, "1"])
def test_a_first_word_that_does_not_return_names_the_column_unless_said(tmp_path, one_device, header):
    (tmp_path / "words.txt").write_text(lines(["once", *WORDS]))
    found, said = rqa_of(one_device, tmp_path / "words.txt", *([] if header is None else ["--header", header]))
    assert found == measures(one_device, WORDS if header in (None, "1") else ["once", *WORDS])
    assert ("('once') names the column; if it is data, say --header" in said) == (header is None)


def test_a_first_word_that_returns_far_below_is_refused_with_the_option(tmp_path):
    text = lines(["once", *MANY, "once", "w1"])
    with pytest.raises(InputError, match=r"line 902 is 'once' as the first one.*header=1 or header=False"):
        read(tmp_path, text)
    assert words_of(read(tmp_path, text, header=False)[0], "x0") == ["once", *MANY, "once", "w1"]
    assert words_of(read(tmp_path, text, header=1)[0], "once") == [*MANY, "w1"]


@pytest.mark.parametrize("separator", [",", "\t", ";"])
def test_columns_of_words_beside_numbers_are_taken_by_name(tmp_path, one_device, separator):
    rows = zip(WORDS, [0.5, 2.5, 0.25, 3, 0.5, 1, 7, 0.125, 2.0], OTHER, strict=True)
    text = "\n".join(separator.join(map(str, row)) for row in [("word", "level", "reply"), *rows])
    series, told = read(tmp_path, text, "table.csv")
    assert series.names == ("level",) and series.categories is None
    assert "'word', 'reply' hold text and are left out; name it to compare its words" in told
    path = tmp_path / "table.csv"
    assert rqa_of(one_device, path, "--column", "word")[0] == measures(one_device, WORDS)
    cross = rqa_of(one_device, path, "--column", "word", "--against", "reply", "--theiler", 0)[0]
    assert cross == measures(one_device, WORDS, OTHER, theiler=0)
    both = [f"{a} {b}" for a, b in zip(WORDS, OTHER, strict=True)]
    assert rqa_of(one_device, path, "--columns", "word,reply")[0] == measures(one_device, both)


def test_several_columns_of_words_are_several_series(tmp_path, one_device):
    text = "\n".join(map(",".join, [("word", "reply"), *zip(WORDS, OTHER, strict=True)]))
    series, _ = read(tmp_path, text, "table.csv")
    assert series.names == ("word", "reply") and [words_of(series, name) for name in series.names] == [WORDS, OTHER]
    done = inside("rqa", tmp_path / "table.csv", "--radius", 0.5)
    assert done.returncode == 2 and "--column is needed" in done.stderr
    out = tmp_path / "batch.json"
    done = inside("rqa-batch", tmp_path / "table.csv", "--radius", 0.5, "--device", one_device, "-o", out, "--json")
    rates = [row["recurrence_rate"] for row in json.loads(done.stdout)["results"]]
    assert rates == [measures(one_device, words)["recurrence_rate"] for words in (WORDS, OTHER)]
    cross = inside("rqa-batch", tmp_path / "table.csv", "--radius", 0.5, "--device", one_device, "--columns", "word",
                   "--against", "reply", "--theiler", 0, "--json")  # fmt: skip
    assert json.loads(cross.stdout)["results"][0]["recurrence_rate"] == (
        measures(one_device, WORDS, OTHER, theiler=0)["recurrence_rate"])  # fmt: skip


def test_a_row_without_its_second_word_is_a_row(tmp_path):
    series, _ = read(tmp_path, "speaker,word\na,dog\nb,\na,cat\nb,dog\n", "table.csv")
    assert words_of(series, "word") == ["dog", None, "cat", "dog"]
    repeated, told = read(tmp_path, "speaker,word\na,dog\nb,cat\nspeaker,word\na,cat\n", "again.csv")
    assert words_of(repeated, "word") == ["dog", "cat", "cat"] and "repeats the header" in told


def test_words_for_missing_values_are_gaps_and_told(tmp_path):
    series, told = read(tmp_path, "dog\n\ncat\ndog\nNone\ncat\nblink\nNA\ndog\n", missing="blink")
    assert words_of(series, "x0") == ["dog", None, "cat", "dog", None, "cat", None, None, "dog"]
    assert "cells such as 'NA', 'None' are gaps" in told and "2 different words" in told
    only, told = read(tmp_path, "dog\ndog\ncat\n", missing="cat")
    assert "one word only ('dog')" in told and words_of(only, "x0") == ["dog", "dog", None]


def test_words_and_numbers_in_one_column_are_refused(tmp_path):
    text = lines(["code", *[3, 1, "dog", 4, 1, 5, "cat", 9, 2, 6]])
    (tmp_path / "mixed.txt").write_text(text)
    done = inside("rqa", tmp_path / "mixed.txt", "--radius", 0.5)
    assert done.returncode == 3
    assert "line 4 holds 'dog'" in done.stderr and "--missing 'dog,cat'" in done.stderr
    assert "words that are compared do not begin like numbers: write such as c3 for 3" in done.stderr


@pytest.mark.parametrize("given", [{"normalize": "zscore"}, {"radius_unit": "std"}, {"metric": "cosine"}], ids=str)
def test_words_have_no_scale_and_no_direction(tmp_path, given):
    series, _ = read(tmp_path, lines(WORDS))
    for words in (WORDS, series):
        for call in (lambda x: pyedmcl.rqa(x, radius=0.5, **given),
                     lambda x: pyedmcl.rqa_batch([x], radius=0.5, **given),
                     lambda x: pyedmcl.joint_rqa(x, x, radius=0.5, **given)):  # fmt: skip
            with pytest.raises(InputError, match=r"words are equal or not, and have no"):
                call(words)
    with pytest.raises(InputError, match=r"standardize is for numbers, and 'x0' holds words"):
        read(tmp_path, lines(WORDS), standardize=True)


def test_the_other_side_of_joint_recurrence_has_a_radius_of_its_own(one_device):
    numbers = np.arange(9.0) % 4
    joint = pyedmcl.joint_rqa(WORDS, numbers, radius=0.5, radius_y=1.5, device=one_device)
    codes = np.unique(WORDS, return_inverse=True)[1].astype(float)
    assert joint.counts == pyedmcl.joint_rqa(codes, numbers, radius=0.5, radius_y=1.5, device=one_device).counts
    with pytest.raises(InputError, match=r"words are equal or not; give radius=0.5"):
        pyedmcl.joint_rqa(WORDS, WORDS, radius=0.5, radius_y=1.5)


def test_two_files_have_the_same_code_for_a_word(tmp_path, one_device):
    x, _ = read(tmp_path, lines(WORDS), "a.txt")
    y, _ = read(tmp_path, lines(OTHER), "b.txt")
    assert measures(one_device, x, y, theiler=0) == measures(one_device, WORDS, OTHER, theiler=0)
    profile = pyedmcl.lag_profile(x, y, radius=0.5, lags=3, device=one_device)
    np.testing.assert_array_equal(
        profile.rate, pyedmcl.lag_profile(WORDS, OTHER, radius=0.5, lags=3, device=one_device).rate
    )


def test_rows_of_words_turned_round(tmp_path):
    series, _ = read(tmp_path, "first,dog,cat,dog\nsecond,a,b,a\n", header=False, transpose=True)
    assert words_of(series, "first") == ["dog", "cat", "dog"] and words_of(series, "second") == ["a", "b", "a"]
    series, told = read(tmp_path, "dog,cat,dog,the\na,b,a,b\n", header=False, transpose=True)
    assert words_of(series, "x0") == ["dog", "cat", "dog", "the"] and words_of(series, "x1") == ["a", "b", "a", "b"]
    assert "the first cell of each row is data, as 'dog' occurs again in its row" in told
    numbers, told = read(tmp_path, "north,1,2,3\n3,4,3,5\n", header=False, transpose=True)
    assert numbers.names == ("north", "3") and "occurs again" not in told
    with pytest.raises(InputError, match=r"transpose: there are names, but no columns of data"):
        read(tmp_path, "once\nupon\na\n", header=False, transpose=True)


def test_only_recurrence_takes_words(tmp_path):
    series, _ = read(tmp_path, lines(WORDS * 8))
    for call in (lambda: pyedmcl.simplex(series, E=2), lambda: pyedmcl.xmap(series, E=1),
                 lambda: pyedmcl.mutual_information(series, lags=3)):  # fmt: skip
        with pytest.raises(InputError, match=r"holds words, which can only be compared"):
            call()
    (tmp_path / "words.txt").write_text(lines(WORDS))
    done = inside("simplex", tmp_path / "words.txt", "--E", 2)
    assert done.returncode == 3 and "is not numeric" in done.stderr


def test_refusals_of_words_say_how_words_are_given():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"word": WORDS})
    for call in (pyedmcl.rqa, pyedmcl.recurrence_plot, pyedmcl.recurrence_network):
        with pytest.raises(InputError, match=r"single series such as data\['word'\], of which radius=0.5 finds equal"):
            call(frame, radius=0.5)
        with pytest.raises(InputError, match=r"Words are given as single series, of which"):
            call(np.array([WORDS, OTHER]).T, radius=0.5)
        with pytest.raises(InputError, match=r"if all are categories, give texts, as in list\(map\(str, x\)\)"):
            call(["a", 1, "b", "a"], radius=0.5)
        with pytest.raises(InputError, match=r"words are equal or not; give threshold='fixed' and radius=0.5"):
            call(WORDS, radius=(0.5, 2), threshold="corridor")
    with pytest.raises(InputError, match=r"Only numbers can be used here; rqa is one of the functions that take words"):
        pyedmcl.rqa_significance(WORDS * 4, radius=0.5, n=19)
    with pytest.raises(InputError, match=r"words are given as a list of series, each a list of texts"):
        pyedmcl.rqa_batch(np.array([WORDS, OTHER]), radius=0.5)


def test_advice_for_categories_names_no_scale(one_device):
    different = [f"w{number}" for number in range(60)]
    with pytest.warns(PyedmclWarning, match=r"hardly any lines.*Only equal ones recur; join categories"):
        pyedmcl.rqa(different, radius=0.5, device=one_device)
    with pytest.warns(PyedmclWarning, match=r"Only equal ones recur: if one that occurs often stands for nothing"):
        pyedmcl.rqa(["none of it"] * 50 + WORDS, radius=0.5, device=one_device)
