"""The public functions and the commands, a row each: the package's names and the command line derive from here.

And limits of arguments, which everything may know.
"""

from __future__ import annotations

#: Surrogates of a pair that n="auto" may draw, as a mean over all pairs, unless another number is asked for.
BUDGET = 2000
#: The largest magnitude of any integer: sums of a few still fit 64 bits.
LARGEST = 2**62
#: Of a series, as kernels count rows with 32 bits.
MOST_STEPS = 2**31 - 1024
# The lists of a work-item lie in its private memory, and a CPU runtime's threads have small stacks.
MOST_NEIGHBOURS = 1024
#: Sub-libraries or surrogates, and steps that a series is continued by: beyond these a mistake is more likely.
MOST_DRAWS = 10_000_000
MOST_GENERATED = 1_000_000
#: Name of each public function, and the module of the package that holds it.
FUNCTIONS = {
    "knn": "embedding.neighbors",
    "simplex": "forecast.simplex",
    "smap": "forecast.smap",
    "predict_nonlinear": "forecast.skill",
    "predict_interval": "forecast.skill",
    "predict_exclusion_radius": "forecast.skill",
    "embed": "embedding.neighbors",
    "embed_dimension": "embedding.dimension",
    "embedding_scan": "embedding.scan",
    "false_neighbors": "embedding.neighbors",
    "mutual_information": "recurrence.mutual_information",
    "multiview": "forecast.multiview",
    "xmap": "crossmap.xmap",
    "open_xmap": "crossmap.xmap",
    "xmap_grid": "crossmap.grid",
    "open_xmap_grid": "crossmap.grid",
    "xmap_significance": "significance.xmap_significance",
    "ccm": "convergence.ccm",
    "ccm_lagged": "convergence.ccm",
    "ccm_matrix": "convergence.matrix",
    "open_ccm_matrix": "convergence.matrix",
    "ccm_significance": "significance.significance",
    "partial_ccm": "network.partial",
    "check": "table_check",
    "suggest": "suggestion",
    "causal_network": "network.causal_network",
    "compare": "statistics",
    "false_discovery": "statistics",
    "surrogate": "surrogates.surrogate",
    "rqa": "recurrence.rqa",
    "joint_rqa": "recurrence.rqa",
    "windowed_rqa": "recurrence.windowed",
    "rqa_batch": "recurrence.batch",
    "lag_profile": "recurrence.profile",
    "rqa_significance": "recurrence_tests",
    "rqa_bands": "recurrence_tests",
    "recurrence_plot": "recurrence.images",
    "distance_plot": "recurrence.images",
    "recurrence_network": "recurrence.network",
    "kernel_source": "export.kernel_source",
    "open_result": "opening",
    "report": "reporting.report",
}

#: Classes of what functions return, and their modules: those that a saved result may hold as a whole.
RESULTS = {
    "CheckResult": "table_check",
    "Suggestion": "suggestion",
    "Comparison": "statistics",
    "XmapSignificance": "significance.xmap_significance",
    "EmbedDimensionResult": "embedding.dimension",
    "SkillResult": "forecast.skill",
    "XmapEdges": "crossmap.results",
    "CausalNetwork": "network.verdicts",
    "KnnResult": "embedding.neighbors",
    "SmapResult": "forecast.smap",
    "NonlinearResult": "forecast.smap",
    "XmapResult": "crossmap.results",
    "XmapGrid": "crossmap.grid",
    "GridChoice": "crossmap.grid",
    "CcmSignificance": "significance.significance",
    "SimplexResult": "forecast.simplex",
    "EmbedResult": "embedding.neighbors",
    "PartialCcm": "network.partial",
    "CcmMatrixResult": "convergence.results",
    "CcmResult": "convergence.results",
    "LaggedCcmResult": "convergence.results",
    "FalseNeighbors": "embedding.neighbors",
    "EmbeddingScan": "embedding.scan",
    "MutualInformation": "recurrence.mutual_information",
    "RecurrencePlot": "recurrence.images",
    "DistancePlot": "recurrence.images",
    "RqaBatch": "recurrence.batch",
    "LagProfile": "recurrence.measures",
    "RqaSignificance": "recurrence_tests",
    "RqaBands": "recurrence_tests",
    "RecurrenceTable": "recurrence.measures",
    "RecurrenceNetwork": "recurrence.network",
    "RecurrenceResult": "recurrence.measures",
    "MultiviewResult": "forecast.multiview",
    "WindowedMap": "crossmap.results",
    "WindowedSignificance": "significance.xmap_significance",
    "WindowedCcm": "convergence.results",
    "WindowedCcmMatrix": "convergence.results",
    "WindowedForecast": "forecast.simplex",
}

#: Classes of what results consist of, and their modules.
PARTS = {
    "Remark": "table_check",
    "Grid": "series.fields",
    "HeldParts": "crossmap.results",
    "Counts": "recurrence.counts",
    "BatchCounts": "recurrence.batch_counts",
    "Side": "recurrence.batch_problem",
    "Embedding": "recurrence.points",
    "Spread": "recurrence.arguments",
}

#: Classes whose objects are rows of a table: the module and the function that finds one by its ``name``.
NAMED = {
    "Metric": ("recurrence.arguments", "metric_named"),
    "Convention": ("recurrence.arguments", "convention_named"),
}

#: Commands in the order of ``pyedmcl --help``, and the module of ``cli/`` that holds the function of each: that of its
#: name, with underscores.
COMMANDS = {
    "check": "maps",
    "suggest": "maps",
    "xmap": "maps",
    "xmap-grid": "maps",
    "embed-dimension": "maps",
    "embedding-scan": "maps",
    "simplex": "forecast",
    "smap": "forecast",
    "predict-nonlinear": "forecast",
    "predict-interval": "forecast",
    "multiview": "forecast",
    "ccm": "causes",
    "ccm-matrix": "causes",
    "surrogate-test": "causes",
    "network": "causes",
    "rqa": "recurrence",
    "rqa-batch": "recurrence",
    "recurrence-plot": "recurrence",
    "plot": "results",
    "export": "results",
    "report": "results",
    "status": "results",
    "tune": "tune",
    "kernel": "start",
    "devices": "start",
    "doctor": "start",
    "help": "start",
    "demo": "start",
}
