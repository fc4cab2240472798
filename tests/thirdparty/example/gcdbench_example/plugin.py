"""What the package offers. Nothing heavy is imported here."""

from gcdbench.plugins import DatasetSpec, MethodSpec, MetricSpec, hookimpl


@hookimpl
def gcdbench_methods():
    return [
        MethodSpec(
            name="nearest-mean",
            factory="gcdbench_example.method:NearestMean",
            config="gcdbench_example.method:NearestMeanConfig",
            summary="nearest class mean of mean colours; whatever is far from all means is new",
            needs_backbone=False,
        )
    ]


@hookimpl
def gcdbench_datasets():
    return [DatasetSpec(name="stripes", factory="gcdbench_example.dataset:make_stripes", summary="coloured stripes")]


@hookimpl
def gcdbench_metrics():
    return [MetricSpec(name="purity", factory="gcdbench_example.metric:purity", summary="share of majority classes")]
