"""A small C kernel that makes views about ten times as fast as torch's operators; everything works without it.

``make_views`` uses it where it is available, ``describe_kernels`` says what this process uses; nothing else outside
this package touches compiled code.
"""

from gcdbench.models.kernels.loader import KernelsInUse, describe_kernels, kernels_in_use, kernels_key, kernels_note
from gcdbench.models.kernels.view_kernel import make_views

__all__ = ["KernelsInUse", "describe_kernels", "kernels_in_use", "kernels_key", "kernels_note", "make_views"]
