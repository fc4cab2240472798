"""What the package offers. Nothing heavy is imported here."""

from gcdbench.plugins import DatasetSpec, MethodSpec, MetricSpec, Score, hookimpl, percent


@hookimpl
def gcdbench_methods():
    return [
        MethodSpec(
            name="nearest-mean",
            api=2,
            factory="gcdbench_example.method:NearestMean",
            config="gcdbench_example.method:NearestMeanConfig",
            summary="nearest class mean of mean colours; whatever is far from all means is new",
            needs_backbone=False,
        )
    ]


@hookimpl
def gcdbench_datasets():
    return [
        DatasetSpec(
            name="stripes",
            api=2,
            factory="gcdbench_example.dataset:make_stripes",
            summary="coloured stripes",
        )
    ]


@hookimpl
def gcdbench_metrics():
    return [
        MetricSpec(
            name="purity",
            api=2,
            factory="gcdbench_example.metric:purity",
            scores=[percent("purity", "purity", direction="higher")],
            summary="share of majority classes",
        ),
        MetricSpec(
            name="fragments",
            api=2,
            factory="gcdbench_example.metric:fragments",
            scores=[Score(key="fragments", unit="clusters", direction="lower", decimals=2, bounds=(1, None))],
            summary="clusters over which a class is spread",
        ),
    ]
