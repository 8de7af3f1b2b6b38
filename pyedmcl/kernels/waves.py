"""Surrogates with random phases as targets on the device: wave_turns, wave_sums, wave_pick, wave_place,
wave_border.

Nothing is tuned: it is none of :data:`pyedmcl.kernels.NAMES`.
"""

from ..codegen.spec import KernelSpec

#: Surrogates, and steps, that a work-group of ``wave_sums`` computes, and how many work-items it has.
EDGE, WG = 64, 256
#: All that the text is made for: its arithmetic is in float64, the targets that it writes are float32.
VALUES = {"dtype": "float64"}

SPEC = KernelSpec(
    name="waves",
    producer="mako",
    text="waves.cl.mako",
    arguments="""
        wave_turns(const ulong* keys; int n_groups; const double* turns, spectra; int n_steps, begin, end, first, each,
            stride; double* amplitudes)
        wave_sums(const double* amplitudes, roots, of_series, bases; int n_steps, begin, end, each, stride,
            target_stride; float* targets; int* marked)
        wave_pick(const double* amplitudes; const int* draws; int n_steps, stride; double* picked)
        wave_place(const float* series; const int* columns; int n_steps, target_stride; float* targets)
        wave_border(int n_steps, width, target_stride; float* targets)
    """,
    launches="""
        wave_turns | stride; n_steps / 2 | any
          keys: 2 * n_series_held * n_groups
          turns: 2 * 65536
          spectra: n_series_held * (n_steps / 2 + 1)
          amplitudes: 2 * (n_steps / 2) * stride
        wave_sums | stride * 4; n_steps / 2 / 64 + 1 | 256; 1
          amplitudes: 2 * (n_steps / 2) * stride
          roots: 2 * n_steps
          of_series: 5 * n_series_held
          bases: n_series_held * n_steps
          targets: n_steps * target_stride
          marked: stride
        wave_pick | n_steps / 2 + 1; n_draws_held | any
          amplitudes: 2 * (n_steps / 2) * stride
          draws: n_draws_held
          picked: 2 * n_draws_held * (n_steps / 2 + 1)
        wave_place | n_steps; n_series_held | any
          series: n_series_held * n_steps
          columns: n_series_held
          targets: n_steps * target_stride
        wave_border | target_stride; rows_here | any
          targets: rows_here * target_stride
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.edm.surrogates.surrogate_makers:phases",
)
