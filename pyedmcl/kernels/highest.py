"""The highest rho of several lags, and how many surrogates reach it: highest_begin, highest_keep, highest_count.

Nothing is tuned: it is none of :data:`pyedmcl.kernels.NAMES`.
"""

from ..codegen.spec import KernelSpec

#: Work-items that count the surrogates of a pair.
WG = 64

SPEC = KernelSpec(
    name="highest",
    producer="mako",
    text="highest.cl.mako",
    arguments="""
        highest_begin(const uchar* wanted; const int* span_of; int n_spans, width; real* best, rho)
        highest_keep(real most; int width; real* best, rho)
        highest_count(const uchar* wanted; const int* span_begins; int n_spans, width; const real* best; real* own;
            int* reached, valid; uint* wrong)
    """,
    launches="""
        highest_begin | width; n_libraries_held | any
          wanted: n_libraries_held * n_spans
          span_of: width
          best, rho: n_libraries_held * width
        highest_keep | width; n_libraries_held | any
          best, rho: n_libraries_held * width
        highest_count | n_spans * 64; n_libraries_held | 64; 1
          wanted: n_libraries_held * n_spans
          span_begins: n_spans + 1
          best: n_libraries_held * width
          own, reached, valid: n_libraries_held * n_spans
          wrong: 1
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.edm.shared.exceedance:counts",
)
