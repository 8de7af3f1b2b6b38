"""States into an order in space, with boxes around blocks of them: what the pruned search walks through."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="pruned_order",
    producer="mako",
    text="pruned_order.cl.mako",
    arguments="""
        project(const real* series; ulong first; const int* rows; int n, E, tau; real centre, rounding;
            const real* basis; real* coordinates; int* id)
        axes_of(const real* coordinates; int n; const int* id; int log_size, nodes; int* axis; real* place)
        keys_of(const real* coordinates; int n; const int* id; int log_size, place_bits; const int* axis;
            const real* place; uint* key)
        count(const uint* key; int n, shift, parts; int* counts)
        scan(int* counts; int total)
        scatter(const uint* key; const int* id; int n, shift, parts; const int* counts; uint* new_key; int* new_id)
        gather(const int* rows, id; const real* coordinates; int n, padded; int* row; real* ordered)
        leaf_boxes(const int* row; const real* ordered; int n, padded, parents; real* boxes; int* first_row)
        upper_boxes(real* boxes; int* first_row; int below, nodes, here, parents)
    """,
    launches="""
        digits = select(bits > 4, 256, 16)
        scanners = select(wg > 127, 256, wg)
        project | n | any
          series: first + n_steps_held
          rows, id: n
          basis: E * axes
          coordinates: n * (axes + 1)
        axes_of | nodes | any
          coordinates: n * (axes + 1)
          id: n
          axis: nodes
          place: 2 * nodes
        keys_of | n | any
          coordinates: n * (axes + 1)
          id, key: n
          axis: n_nodes
          place: 2 * n_nodes
        count | parts * wg | wg
          key: n
          counts: parts * digits
        scan | scanners | scanners
          counts: total
        scatter | parts * wg | wg
          key, id, new_key, new_id: n
          counts: parts * digits
        gather | padded | any
          rows, id: n
          coordinates: n * (axes + 1)
          row: padded
          ordered: padded * (axes + 1)
        leaf_boxes | parents * 16 | any
          row: padded
          ordered: padded * (axes + 1)
          boxes: parents * 32 * axes
          first_row: parents * 16
        upper_boxes | parents * 16 | any
          boxes: (here + parents) * 32 * axes
          first_row: (here + parents) * 16
    """,
    specialisation=("dtype", "axes", "leaf"),
    tunables=(
        Tunable("wg", (1, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items of a group that sorts a part"),
        Tunable("each", (4, 8, 16, 32, 4096, 16384), {"cpu": 4096, "gpu": 8}, "states of a work-item in a pass"),
        Tunable("bits", (4, 8), {"cpu": 8, "gpu": 4}, "bits of a digit; each work-item counts every digit"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] << v["bits"] <= 8192, "counters of a group take 32 kB of local memory at most"),
        Constraint(
            lambda v: v["wg"] == 1 or v["each"] <= 32, "a group's work-items hold their states' keys in registers"
        ),
    ),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
