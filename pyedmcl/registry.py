"""The public functions and the commands, a row each: the package's names and the command line derive from here.

To add a function: a row here, and a line for type checkers in ``pyedmcl/__init__.py``, which a test compares.
"""

from __future__ import annotations

#: Name of each public function, and the module of the package that holds it.
FUNCTIONS = {
    "knn": "edm.knn",
    "simplex": "edm.simplex",
    "smap": "edm.smap",
    "predict_nonlinear": "edm.predict_nonlinear",
    "predict_interval": "edm.predict_interval",
    "predict_exclusion_radius": "edm.predict_exclusion_radius",
    "embed": "edm.embed",
    "embed_dimension": "edm.embed_dimension",
    "embedding_scan": "edm.embedding_scan",
    "false_neighbors": "edm.false_neighbors",
    "mutual_information": "recurrence.mutual_information",
    "multiview": "edm.multiview",
    "xmap": "edm.xmap",
    "open_xmap": "edm.xmap",
    "xmap_significance": "edm.xmap_significance",
    "ccm": "edm.ccm",
    "ccm_lagged": "edm.ccm",
    "ccm_matrix": "edm.ccm_matrix",
    "open_ccm_matrix": "edm.ccm_matrix",
    "ccm_significance": "edm.significance",
    "partial_ccm": "edm.partial_ccm",
    "check": "edm.check",
    "causal_network": "edm.causal_network",
    "false_discovery": "edm.false_discovery",
    "surrogate": "edm.surrogate",
    "rqa": "recurrence.rqa",
    "joint_rqa": "recurrence.joint",
    "windowed_rqa": "recurrence.windowed",
    "rqa_batch": "recurrence.batch",
    "recurrence_plot": "recurrence.image.recurrence_plot",
    "distance_plot": "recurrence.image.recurrence_plot",
    "recurrence_network": "recurrence.network",
}

#: Commands in the order of ``pyedmcl --help``: each is the function of its name, with underscores, in such a module of
#: ``cli/``.
COMMANDS = (
    "check",
    "xmap",
    "embed-dimension",
    "embedding-scan",
    "simplex",
    "smap",
    "predict-nonlinear",
    "predict-interval",
    "multiview",
    "ccm",
    "ccm-matrix",
    "surrogate-test",
    "network",
    "rqa",
    "rqa-batch",
    "recurrence-plot",
    "plot",
    "export",
    "status",
    "tune",
    "devices",
    "demo",
)
