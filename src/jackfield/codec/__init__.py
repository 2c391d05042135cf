"""Wire to model and back: Kubernetes' JSON becomes frozen values here, and nowhere else."""

from jackfield.codec.decoding import BadObject, Listing, decode, decode_list, decode_many
from jackfield.codec.encoding import encode
from jackfield.codec.wire import Raw, RawValue, copied, dig, objects, without_nulls

__all__ = [
    "BadObject",
    "Listing",
    "Raw",
    "RawValue",
    "copied",
    "decode",
    "decode_list",
    "decode_many",
    "dig",
    "encode",
    "objects",
    "without_nulls",
]
