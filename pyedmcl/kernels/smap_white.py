"""Maps of S-map: states of libraries, with regressors in which each library is white."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="smap_white",
    producer="mako",
    text="smap_white.cl.mako",
    arguments="""
        smap_white(const moment* series; int first_library, series_stride, first, lag, n_rows, n_padded;
            const uchar* allowed; int allowed_stride; moment theta; const moment* strength; moment* work;
            real* states, columns; moment* penalty)
    """,
    specialisation=("E", "gaps", "penalised", "dtype"),
    tunables=(Tunable("wg", (1, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items that share a library"),),
    oracle="pyedmcl.reference.smap:map_rho",
    exact=False,
    same_bits=False,
)
