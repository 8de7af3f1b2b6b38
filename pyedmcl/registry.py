"""The public functions and the commands, a row each: the package's names and the command line derive from here.

To add a function: a row here, and a line for type checkers in ``pyedmcl/__init__.py``, which a test compares.
"""

from __future__ import annotations

#: Surrogates of a pair that n="auto" may draw, as a mean over all pairs, unless another number is asked for.
BUDGET = 2000
#: Name of each public function, and the module of the package that holds it.
FUNCTIONS = {
    "knn": "edm.embedding.knn",
    "simplex": "edm.forecasts.simplex",
    "smap": "edm.forecasts.smap",
    "predict_nonlinear": "edm.forecasts.predict_nonlinear",
    "predict_interval": "edm.forecasts.predict_interval",
    "predict_exclusion_radius": "edm.forecasts.predict_exclusion_radius",
    "embed": "edm.embedding.embed",
    "embed_dimension": "edm.embedding.embed_dimension",
    "embedding_scan": "edm.embedding.embedding_scan",
    "false_neighbors": "edm.embedding.false_neighbors",
    "mutual_information": "recurrence.mutual_information",
    "multiview": "edm.forecasts.multiview",
    "xmap": "edm.maps.xmap",
    "open_xmap": "edm.maps.open_xmap",
    "xmap_grid": "edm.maps.xmap_grid",
    "open_xmap_grid": "edm.maps.xmap_grid",
    "xmap_significance": "edm.significance.xmap_significance",
    "ccm": "edm.ccm.ccm",
    "ccm_lagged": "edm.ccm.ccm",
    "ccm_matrix": "edm.ccm.ccm_matrix",
    "open_ccm_matrix": "edm.ccm.ccm_matrix",
    "ccm_significance": "edm.significance.significance",
    "partial_ccm": "edm.causes.partial_ccm",
    "check": "edm.check",
    "causal_network": "edm.causes.causal_network",
    "false_discovery": "edm.shared.false_discovery",
    "surrogate": "edm.surrogates.surrogate",
    "rqa": "recurrence.rqa",
    "joint_rqa": "recurrence.joint",
    "windowed_rqa": "recurrence.windowed",
    "rqa_batch": "recurrence.batch",
    "lag_profile": "recurrence.profile",
    "recurrence_plot": "recurrence.image.recurrence_plot",
    "distance_plot": "recurrence.image.recurrence_plot",
    "recurrence_network": "recurrence.network",
    "kernel_source": "export.kernel_source",
    "open_result": "edm.open_result",
    "report": "reporting.report",
}

#: Classes of what functions return, and their modules: those that a saved result may hold as a whole.
RESULTS = {
    "CheckResult": "edm.check",
    "XmapSignificance": "edm.significance.xmap_significance",
    "EmbedDimensionResult": "edm.embedding.embed_dimension_result",
    "SkillResult": "edm.forecasts.skill_result",
    "XmapEdges": "edm.maps.xmap_edges",
    "CausalNetwork": "edm.causes.causal_network_result",
    "KnnResult": "edm.embedding.knn_result",
    "SmapResult": "edm.forecasts.smap_result",
    "NonlinearResult": "edm.forecasts.smap_result",
    "XmapResult": "edm.maps.xmap_result",
    "XmapGrid": "edm.maps.xmap_grid_result",
    "GridChoice": "edm.maps.xmap_grid_result",
    "CcmSignificance": "edm.significance.significance",
    "SimplexResult": "edm.forecasts.simplex_result",
    "EmbedResult": "edm.embedding.embed",
    "PartialCcm": "edm.causes.partial_ccm_result",
    "CcmMatrixResult": "edm.ccm.ccm_matrix_result",
    "CcmResult": "edm.ccm.ccm_result",
    "LaggedCcmResult": "edm.ccm.ccm_result",
    "FalseNeighbors": "edm.embedding.false_neighbors",
    "EmbeddingScan": "edm.embedding.embedding_scan_result",
    "MutualInformation": "recurrence.mutual_information",
    "RecurrencePlot": "recurrence.image.plots",
    "DistancePlot": "recurrence.image.plots",
    "RqaBatch": "recurrence.batch_result",
    "LagProfile": "recurrence.profile_result",
    "RecurrenceTable": "recurrence.table",
    "RecurrenceNetwork": "recurrence.network",
    "RecurrenceResult": "recurrence.result",
    "MultiviewResult": "edm.forecasts.multiview",
    "WindowedMap": "edm.maps.xmap_windows_result",
    "WindowedCcm": "edm.ccm.ccm_windows_result",
    "WindowedCcmMatrix": "edm.ccm.ccm_matrix_windows_result",
    "WindowedForecast": "edm.forecasts.simplex_windows_result",
}

#: Classes of what results consist of, and their modules.
PARTS = {
    "Remark": "edm.check",
    "Grid": "data.grid",
    "HeldParts": "edm.maps.xmap_edges",
    "Counts": "recurrence.counts",
    "BatchCounts": "recurrence.batch_counts",
    "Side": "recurrence.batch_sides",
    "Embedding": "recurrence.points",
    "Spread": "recurrence.units",
}

#: Classes whose objects are rows of a table: the module and the function that finds one by its ``name``.
NAMED = {
    "Metric": ("recurrence.metrics", "metric_named"),
    "Convention": ("recurrence.conventions", "convention_named"),
}

#: Commands in the order of ``pyedmcl --help``: each is the function of its name, with underscores, in such a module of
#: ``cli/``.
COMMANDS = (
    "check",
    "xmap",
    "xmap-grid",
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
    "report",
    "status",
    "tune",
    "kernel",
    "devices",
    "doctor",
    "help",
    "demo",
)
