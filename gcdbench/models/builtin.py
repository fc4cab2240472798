"""The backbones that come with gcdbench. Listing them imports no torch."""

from __future__ import annotations

from collections.abc import Iterable

from gcdbench.plugins.hookspecs import hookimpl
from gcdbench.plugins.specs import BackboneSpec

DINO = "Caron et al., Emerging Properties in Self-Supervised Vision Transformers, ICCV 2021"
DINOV2 = "Oquab et al., DINOv2: Learning Robust Visual Features without Supervision, TMLR 2024"


@hookimpl
def gcdbench_backbones() -> Iterable[BackboneSpec]:
    """EfficientNet-Lites, ResNets, the transformers of DINO and DINOv2, and whatever timm has."""
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
            citation=DINO,
            tags=("vit", "self-supervised"),
            extra="timm",
            identify="gcdbench.models.dino_weights:identify_vit_b16",
        ),
        *(
            BackboneSpec(
                name=name,
                factory="gcdbench.models.dino:load_dino",
                summary=f"{summary}; the last block trains",
                citation=citation,
                tags=("vit", "self-supervised"),
                extra="timm",
                identify="gcdbench.models.dino_weights:identify_dino",
                argument=name,
            )
            for name, summary, citation in (
                ("dino-vits16", "ViT-S/16, DINO", DINO),
                ("dino-vitb16", "ViT-B/16, DINO", DINO),
                ("dinov2-vits14", "ViT-S/14, DINOv2", DINOV2),
                ("dinov2-vitb14", "ViT-B/14, DINOv2", DINOV2),
            )
        ),
        BackboneSpec(
            name="timm",
            factory="gcdbench.models.timm_network:load_timm",
            summary="timm:<name>, any network of timm with a map or tokens; its last stage or block trains",
            citation="Wightman, PyTorch Image Models, 2019",
            tags=("cnn", "vit"),
            extra="timm",
            identify="gcdbench.models.timm_weights:identify_timm",
            takes_argument=True,
        ),
    ]
