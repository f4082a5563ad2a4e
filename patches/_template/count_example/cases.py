"""Detections that matter to count_example."""

from __future__ import annotations

from collections.abc import Iterator

from trtpatch.verify import Case
from trtpatch.verify.samples import detections


def cases() -> Iterator[Case]:
    yield Case("different counts", detections([0, 3, 20], anchors=50))
    yield Case("more than a block", detections([300], anchors=900, room=300))
    alike = detections([200], anchors=900, room=300)
    alike["detections_classes"][:] = 7
    yield Case("all of one class", alike)
    yield Case("classes that are not counted", detections([20], anchors=50), {"classes": 40})
    yield Case("one class", detections([20], anchors=50), {"classes": 1})
    yield Case("many classes", detections([5, 20], anchors=50), {"classes": 100000})
