"""Methods by name, and the base classes for writing a new method.

Other packages add theirs under the entry-point group `farshore.methods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports
from ..base.registry import Registry

if TYPE_CHECKING:
    from ..data.batch import Batch as Batch
    from ..entry import Entry as Entry
    from .method import Method as Method
    from .method import Replay as Replay
    from .method import Terms as Terms
    from .naive import Naive as Naive
    from .tailored import Tailored as Tailored
    from .tailored import TailoredSettings as TailoredSettings

EXPORTS = {
    "Batch": ".data.batch",
    "Entry": ".entry",
    "Method": "method",
    "Naive": "naive",
    "Replay": "method",
    "Tailored": "tailored",
    "TailoredSettings": "tailored",
    "Terms": "method",
}

__all__ = ["METHODS", "continual", *EXPORTS]

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__ = lazy_exports(__name__, EXPORTS)

# What learns unless a method is named: plain replay.
DEFAULT_METHOD = "er"

METHODS: Registry[type[Entry]] = Registry(
    "method",
    "farshore.methods",
    {
        "finetune": "farshore.methods.finetune:Finetune",
        "agem": "farshore.methods.agem:AGEM",
        "upgd": "farshore.methods.upgd:UPGD",
        "ewc": "farshore.methods.ewc:EWC",
        "si": "farshore.methods.si:SI",
        "snr": "farshore.methods.snr:SNR",
        "fdr": "farshore.methods.fdr:FDR",
        "er-ace": "farshore.methods.er_ace:ERACE",
        "lode": "farshore.methods.lode:LODE",
        "star": "farshore.methods.star:STAR",
        "cope": "farshore.methods.cope:CoPE",
        "efc": "farshore.methods.efc:EFC",
        "sarl": "farshore.methods.sarl:SARL",
        "er": "farshore.methods.er:ER",
        "er-kd": "farshore.methods.er_kd:ERKD",
        "der++": "farshore.methods.derpp:DERPP",
        "cl-vrex": "farshore.methods.vrex:CLVREX",
        "cl-fishr": "farshore.methods.fishr:CLFishr",
        "cl-coral": "farshore.methods.coral:CLCORAL",
        "cl-mmd": "farshore.methods.mmd:CLMMD",
        "cl-andmask": "farshore.methods.andmask:CLANDMask",
        "cl-mix": "farshore.methods.mix:CLMix",
        "naive-cl-vrex": "farshore.methods.vrex:NaiveCLVREX",
        "naive-cl-fishr": "farshore.methods.fishr:NaiveCLFishr",
        "naive-cl-coral": "farshore.methods.coral:NaiveCLCORAL",
        "naive-cl-mmd": "farshore.methods.mmd:NaiveCLMMD",
        "naive-cl-andmask": "farshore.methods.andmask:NaiveCLANDMask",
        "trees": "farshore.systems.trees.entry:Trees",
        "ridge": "farshore.systems.closed_form.ridge:Ridge",
        "ncm": "farshore.systems.closed_form.ncm:NCM",
        "slda": "farshore.systems.closed_form.slda:SLDA",
        "best": "farshore.systems.committee.entry:Best",
        "majority": "farshore.systems.closed_form.majority:Majority",
        "joint": "farshore.methods.joint:Joint",
        "urm": "farshore.methods.urm:URM",
    },
)


def continual() -> list[str]:
    """Names of the methods that learn one domain after another and are ranked."""
    return [name for name in METHODS.names() if METHODS.get(name).kind == "continual"]
