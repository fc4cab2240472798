"""The backbones that come with gcdbench. Listing them imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import BackboneSpec


@hookimpl
def gcdbench_backbones() -> Iterable[BackboneSpec]:
    """EfficientNet-Lite0 and Lite2, ResNet-18, ResNet-50 and ViT-B/16."""
    return [
        BackboneSpec(
            name="efficientnet-lite0",
            factory="gcdbench.models.lite0:load_lite0",
            summary="EfficientNet-Lite0, ImageNet; the stride-32 stages train; weights come with the installation",
            citation="Tan and Le, EfficientNet, ICML 2019; Lite variants by Google, 2020",
            tags=("cnn", "imagenet", "offline"),
            identify="gcdbench.models.lite0_weights:identify_lite0",
        ),
        BackboneSpec(
            name="efficientnet-lite2",
            factory="gcdbench.models.lite2:load_lite2",
            summary="EfficientNet-Lite2, ImageNet; the stride-32 stages train; weights come with the extra 'lite2'",
            citation="Tan and Le, EfficientNet, ICML 2019; Lite variants by Google, 2020",
            tags=("cnn", "imagenet", "offline"),
            extra="lite2",
            identify="gcdbench.models.lite0_weights:identify_lite2",
        ),
        BackboneSpec(
            name="resnet18",
            factory="gcdbench.models.resnet:load_resnet18",
            summary="ResNet-18, ImageNet; layer4 trains",
            citation="He et al., Deep Residual Learning for Image Recognition, CVPR 2016",
            tags=("cnn", "imagenet"),
            identify="gcdbench.models.resnet_weights:identify_resnet18",
        ),
        BackboneSpec(
            name="resnet50",
            factory="gcdbench.models.resnet50:load_resnet50",
            summary="ResNet-50 (v1.5), ImageNet; layer4 trains",
            citation="He et al., Deep Residual Learning for Image Recognition, CVPR 2016",
            tags=("cnn", "imagenet"),
            identify="gcdbench.models.resnet_weights:identify_resnet50",
        ),
        BackboneSpec(
            name="vit-b16",
            factory="gcdbench.models.vit:load_vit_b16",
            summary="ViT-B/16, DINO; the last block trains; 224 px only",
            citation="Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021",
            tags=("vit", "self-supervised"),
            extra="vit",
        ),
    ]
