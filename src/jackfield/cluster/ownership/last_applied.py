"""What `kubectl apply` applied last, which it keeps in an annotation for as long as it is not the server that applies.

Knows the annotation. Must not know managers.
"""

from typing import Final

import msgspec

from jackfield.codec import Raw, dig

ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
KUBECTL: Final = "kubectl"
"""The only manager for whom the server looks after the annotation."""
ANNOTATIONS_BYTES_MAX: Final = 256 * 1024


def of(live: Raw, api_version: str) -> Raw:
    """Return what was applied last; nothing if that is not known, or was of another version."""
    try:
        body = msgspec.json.decode(dig(live, "metadata", "annotations", ANNOTATION) or "{}", type=Raw)
    except (msgspec.DecodeError, RecursionError, TypeError):
        return {}
    return body if body.get("apiVersion") == api_version else {}


def kept(result: Raw, body: Raw, manager: str) -> Raw:
    """Return an object after an apply, with its annotation up to date if it has one and kubectl applied."""
    annotations = dig(result, "metadata", "annotations")
    if manager != KUBECTL or not isinstance(annotations, dict) or not annotations.get(ANNOTATION):
        return result
    value = _spelt(body)
    changed = {**annotations, ANNOTATION: value}
    if sum(len(name) + len(str(one).encode()) for name, one in changed.items()) > ANNOTATIONS_BYTES_MAX:
        del changed[ANNOTATION]
    return {**result, "metadata": {**result["metadata"], "annotations": changed}}


def _spelt(body: Raw) -> str:
    metadata = dict(body.get("metadata") or {})
    if isinstance(metadata.get("annotations"), dict):
        metadata["annotations"] = {
            name: one for name, one in metadata["annotations"].items() if name != ANNOTATION
        }
    text = msgspec.json.encode({**body, "metadata": metadata}, order="sorted").decode()
    # Go escapes what could be taken for HTML, and ends the line.
    for letter, escaped in (("&", "\\u0026"), ("<", "\\u003c"), (">", "\\u003e")):
        text = text.replace(letter, escaped)
    return f"{text}\n"
