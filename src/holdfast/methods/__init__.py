"""Methods by name. Other packages add theirs under the entry-point group `holdfast.methods`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..registry import Registry

if TYPE_CHECKING:
    from .method import Method

METHODS: Registry[type[Method]] = Registry(
    "method",
    "holdfast.methods",
    {
        "finetune": "holdfast.methods.finetune:Finetune",
        "agem": "holdfast.methods.agem:AGEM",
        "upgd": "holdfast.methods.upgd:UPGD",
        "ewc": "holdfast.methods.ewc:EWC",
        "si": "holdfast.methods.si:SI",
        "snr": "holdfast.methods.snr:SNR",
        "fdr": "holdfast.methods.fdr:FDR",
        "er-ace": "holdfast.methods.er_ace:ERACE",
        "lode": "holdfast.methods.lode:LODE",
        "star": "holdfast.methods.star:STAR",
        "cope": "holdfast.methods.cope:CoPE",
        "efc": "holdfast.methods.efc:EFC",
        "sarl": "holdfast.methods.sarl:SARL",
        "er": "holdfast.methods.er:ER",
        "der++": "holdfast.methods.derpp:DERPP",
        "cl-vrex": "holdfast.methods.vrex:CLVREX",
        "cl-fishr": "holdfast.methods.fishr:CLFishr",
        "cl-coral": "holdfast.methods.coral:CLCORAL",
        "cl-mmd": "holdfast.methods.mmd:CLMMD",
        "cl-andmask": "holdfast.methods.andmask:CLANDMask",
        "naive-cl-vrex": "holdfast.methods.vrex:NaiveCLVREX",
        "naive-cl-fishr": "holdfast.methods.fishr:NaiveCLFishr",
        "naive-cl-coral": "holdfast.methods.coral:NaiveCLCORAL",
        "naive-cl-mmd": "holdfast.methods.mmd:NaiveCLMMD",
        "naive-cl-andmask": "holdfast.methods.andmask:NaiveCLANDMask",
        "urm": "holdfast.methods.urm:URM",
    },
)


def continual() -> list[str]:
    """Names of the methods that learn one domain after the other: all but the offline ones."""
    return [name for name in METHODS.names() if METHODS.get(name).kind == "continual"]
