"""NVIDIA's GPU through CUDA beside the same one through OpenCL: bits, times, places, and PyTorch in the same process.

usage: python bench/cuda_check.py [PART ...] [--opencl nvidia] [--out FILE]

Parts, all of them where none is named:

  places    without PyOpenCL the device is found, the doctor says so, and the demo gives the map that OpenCL gives
  error     a kernel that writes where it must not ends with a message that the process must end
  arrays    results in arrays of PyTorch and CuPy, after their streams; both libraries go on in the same context
  digests   every public function: the bits of OpenCL, by bench/digests.py
  times     whole maps and small calls, in turn on both: seconds and ratio
  first     the first map of a process, with empty caches and with those that it has filled
  launches  of small calls, how much of their time the driver's launches take, which is all that a CUDA graph could save

It needs a GPU with NVIDIA's driver, PyOpenCL with NVIDIA's OpenCL to compare with, and NVRTC (pip install
'pyedmcl[cuda]', or what PyTorch brings). The exit status is 1 where a part fails; times are told and not judged.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from small_calls import cases
from workloads import coupled_maps, mixed_dimensions, weather_like

import pyedmcl
from pyedmcl.device.select import open_device, settle

BENCH = Path(__file__).parent
_WITHOUT_OPENCL = "import sys; sys.modules['pyopencl'] = None; sys.argv[0] = 'pyedmcl'\n" \
                  "from pyedmcl.cli.app import main; main()"  # fmt: skip
_WRITES_ANYWHERE = """
import numpy as np
from pyedmcl.kernels.kernel_spec import declared
from pyedmcl.device.select import open_device
text = "kernel void f(global int* x, long at) { x[at + get_global_id(0)] = 1; }"
executor = open_device("cuda")
kernel = executor.build(text).kernel("f", declared("f(int* x; long at)", False)["f"])
executor.launch(kernel, (64,), (64,), x=executor.allocate(256), at=1 << 45)
executor.finish()
"""
# Words of a caller's maps: series, steps, and options of xmap.
MAPS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "xmap 2,000 x 3,780, E = 4": (2000, 3780, {"E": 4}),
    "the same, compact": (2000, 3780, {"E": 4, "precision": "compact"}),
    "xmap 500 x 3,780, E = 1 to 20": (500, 3780, {"E": mixed_dimensions(500)}),
    "xmap by S-map, 200 x 1,500, E = 5": (200, 1500, {"E": 5, "method": "smap", "theta": 1.5}),
}


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False,
                          env={**os.environ, **environment})  # fmt: skip


def places(opencl: str) -> Iterator[str]:
    """What is wrong, a line each."""
    found = run("-c", _WITHOUT_OPENCL, "devices", "--json", "--doctor")
    if found.returncode:
        yield f"devices ended with {found.returncode}: {found.stderr[-300:]}"
        return
    said = json.loads(found.stdout)
    print(f"without PyOpenCL: {said['chosen']} ({said['reason']})")
    for finding in said["doctor"]:
        print(f"  {finding['level']}: {finding['what'][:150]}")
    if said["chosen"] != "cuda:0:0" or any(finding["level"] == "error" for finding in said["doctor"]):
        yield "without PyOpenCL, cuda:0:0 is not chosen, or the doctor finds an error"
    scores = []
    for begin in (("-c", _WITHOUT_OPENCL, "demo"), ("-m", "pyedmcl", "demo", "--device", opencl)):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, *begin], cwd=folder, capture_output=True, text=True, check=False)
        scores.append([line for line in done.stdout.splitlines() if "ROC AUC" in line or "strongest" in line])
        if done.returncode or not scores[-1]:
            yield f"the demo ended with {done.returncode}: {done.stderr[-300:]}"
    print(*scores[0], sep="\n")
    if scores[0] != scores[-1]:
        yield f"the demo says {scores[0]} through CUDA and {scores[-1]} through OpenCL"


def error(opencl: str) -> Iterator[str]:
    done = run("-c", _WRITES_ANYWHERE)
    last = (done.stderr.strip().splitlines() or [""])[-1]
    print(last[:400])
    if done.returncode == 0 or "end the process" not in last:
        yield "a kernel's error did not end with the message that the process must end"


def arrays(opencl: str) -> Iterator[str]:
    try:
        import cupy
        import torch
    except ImportError as missing:
        print(f"left out: {missing}")
        return
    x = coupled_maps(200, 1000)
    expected = np.asarray(pyedmcl.xmap(x, E=3, device=opencl).rho)
    square = torch.randn(2048, 2048, device="cuda", dtype=torch.float64)
    product = (square @ square).cpu()
    free = torch.cuda.mem_get_info()[0]
    stream = torch.cuda.Stream()
    for _ in range(20):
        with torch.cuda.stream(stream):
            out = torch.full((200, 200), float("nan"), device="cuda", dtype=torch.float32)
            busy = square @ square
        pyedmcl.xmap(x, E=3, out=out, device=stream)
        into = cupy.full((200, 200), np.nan, np.float32)
        pyedmcl.xmap(x, E=3, out=into)
        for name, got in (("PyTorch", out.cpu().numpy()), ("CuPy", into.get())):
            if not np.array_equal(got, expected, equal_nan=True):
                yield f"a result in an array of {name} is another one"
                return
        if not torch.equal(busy.cpu(), product):
            yield "a product of PyTorch beside it is another one"
            return
    kept = free - torch.cuda.mem_get_info()[0]
    print(f"20 maps beside PyTorch and CuPy; {kept / 2**20:,.0f} MiB of the GPU are kept after them")
    given = torch.from_dlpack(into)
    if not np.array_equal(given.cpu().numpy(), expected, equal_nan=True):
        yield "PyTorch reads another result from CuPy's array"


def digests(opencl: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder) / "opencl.json")
        for do, device in (("--record", opencl), ("--check", "cuda")):
            begun = time.perf_counter()
            done = run(str(BENCH / "digests.py"), "--device", device, do, file)
            print(f"{device}: {time.perf_counter() - begun:.0f} s\n{done.stdout[-3000:]}")
            if done.returncode:
                yield f"digests.py {do} on {device} ended with {done.returncode}: {done.stderr[-500:]}"


def in_turn(calls: dict[str, Callable[[], Any]], most: float, least: int = 5) -> dict[str, float]:
    """Median seconds of each call, made in turn until ``most`` seconds have gone by."""
    for call in calls.values():
        call()
    settle()  # what the background compiles after a first call
    for call in calls.values():
        call()
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    begun = time.perf_counter()
    while time.perf_counter() - begun < most or min(map(len, seconds.values())) < least:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(each)) for name, each in seconds.items()}


def times(opencl: str) -> Iterator[str]:
    todo: dict[str, dict[str, Callable[[], Any]]] = {}
    for name, (n, steps, options) in MAPS.items():
        x = coupled_maps(n, steps)
        todo[name] = {device: lambda device=device, x=x, options=options: pyedmcl.xmap(x, device=device, **options)
                      for device in (opencl, "cuda")}  # fmt: skip
    series = weather_like(20_000)
    todo["rqa of 20,000 points"] = {
        device: lambda device=device: pyedmcl.rqa(series, m=5, tau=3, radius=0.7, device=device)
        for device in (opencl, "cuda")
    }
    small = {device: cases(device) for device in (opencl, "cuda")}
    for name in small[opencl]:
        todo[name] = {device: small[device][name] for device in (opencl, "cuda")}
    ratios = []
    for name, calls in todo.items():
        found = in_turn(calls, 2.0 if name in MAPS else 0.5)
        ratios.append(found["cuda"] / found[opencl])
        print(f"{name:58} {found[opencl] * 1e3:9.3f} ms {found['cuda'] * 1e3:9.3f} ms  {ratios[-1]:.3f}", flush=True)
        records.append({"call": name, "opencl_s": found[opencl], "cuda_s": found["cuda"]})
    print(f"geometric mean of {len(ratios)} ratios: {np.exp(np.mean(np.log(ratios))):.3f}")
    yield from ()


def launches(opencl: str) -> Iterator[str]:
    driver, spent = open_device("cuda").driver, list[float]()
    plain = {name: getattr(driver, name) for name in ("cuLaunchKernel", "cuEventRecord")}

    def timed(function: Callable[..., None], *arguments: Any) -> None:
        begun = time.perf_counter()
        function(*arguments)
        spent.append(time.perf_counter() - begun)

    for name, call in cases("cuda").items():
        seconds = in_turn({name: call}, 0.3)[name]
        for each, function in plain.items():
            setattr(driver, each, functools.partial(timed, function))
        found = []
        for _ in range(30):
            spent.clear()
            call()
            found.append((sum(spent), len(spent)))
        for each, function in plain.items():
            setattr(driver, each, function)
        within, count = np.median(found, axis=0)
        print(f"{name:58} {seconds * 1e3:9.3f} ms, of it {within / seconds:4.0%} in {count:.0f} launches", flush=True)
        records.append({"call": name, "cuda_s": seconds, "launches": int(count), "launches_s": float(within)})
    yield from ()


def first(opencl: str) -> Iterator[str]:
    for case in ("mixed", "auto"):
        for device in (opencl, "cuda"):
            with tempfile.TemporaryDirectory() as folder:
                caches = {"PYEDMCL_CACHE_DIR": f"{folder}/a", "CUDA_CACHE_PATH": f"{folder}/b"}
                for words in ("empty", "filled"):
                    done = run(str(BENCH / "first_call.py"), "--device", device, "--case", case, "--shape", "200x1500",
                               "--repeat", "3", "--caches", words, **caches)  # fmt: skip
                    print(f"{device} {words}: {(done.stdout or done.stderr)[-300:].strip()}", flush=True)
                    if done.returncode:
                        yield f"first_call.py on {device} ended with {done.returncode}"


PARTS: dict[str, Callable[[str], Iterator[str]]] = {
    "places": places, "error": error, "arrays": arrays, "digests": digests, "times": times, "first": first,
    "launches": launches,
}  # fmt: skip
records: list[dict[str, Any]] = []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--opencl", default="nvidia", help="the device to compare with")
    parser.add_argument("--out", type=Path, help="records of times, as JSON lines")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part is called {', '.join(sorted(unknown))}")
    wrong = 0
    one, other = (open_device(name).info for name in (options.opencl, "cuda"))
    print(f"{one.id} and {other.id}: {other.name}, driver {other.driver}, NVRTC {open_device('cuda').nvrtc.version}")
    for field, value in one.as_dict().items():
        if value != other.as_dict()[field] and field not in ("id", "executor", "fp16"):
            wrong += 1
            print(f"WRONG {field} is {value!r} for OpenCL, {other.as_dict()[field]!r} for CUDA")
    for name in options.parts or PARTS:
        print(f"\n{name}", flush=True)
        for line in PARTS[name](options.opencl):
            wrong += 1
            print(f"WRONG {line}", flush=True)
    if options.out:
        options.out.write_text("".join(json.dumps({"device": one.name, **record}) + "\n" for record in records))
    print(f"\n{wrong} wrong" if wrong else "\nall as it should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
