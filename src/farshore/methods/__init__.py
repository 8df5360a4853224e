"""Methods by name, and the base classes for writing a new method.

Other packages add theirs under the entry-point group `farshore.methods`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports
from ..base.registry import Listed, Registry

if TYPE_CHECKING:
    from ..data.batch import Batch as Batch
    from ..entry import Entry as Entry
    from .method import Method as Method
    from .method import Replay as Replay
    from .method import Terms as Terms
    from .naive import Naive as Naive
    from .tailored import Tailored as Tailored
    from .tailored import TailoredSettings as TailoredSettings

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__, __all__ = lazy_exports(__name__, "METHODS", "continual")

# What learns unless a method is named: plain replay.
DEFAULT_METHOD = "er"

# The order in which groups are listed.
GROUPS = (
    "finetune",
    "optimization",
    "regularization",
    "replay",
    "latent-replay",
    "trees",
    "tailored",
    "mixture",
    "naive",
    "closed-form",
    "committee",
    "adaptation",
    "upper-bound",
)
# Where each method is, what it does in one line, and its group.
BUILTIN = {
    "finetune": Listed(
        ".finetune:Finetune", "plain training on one domain after another; forgets", "finetune"
    ),
    "agem": Listed(
        ".agem:AGEM", "projects gradients that would raise the loss on kept rows", "optimization"
    ),
    "upgd": Listed(".upgd:UPGD", "protects useful weights and perturbs the others", "optimization"),
    "ewc": Listed(
        ".ewc:EWC",
        "anchors weights that past domains depend on (Fisher information)",
        "regularization",
    ),
    "si": Listed(
        ".si:SI", "anchors weights that lowered the loss on past domains", "regularization"
    ),
    "snr": Listed(".snr:SNR", "resets units that have stopped firing", "regularization"),
    "fdr": Listed(".fdr:FDR", "keeps the probabilities on kept rows as they were", "replay"),
    "er-ace": Listed(
        ".er_ace:ERACE", "replay; new rows compete only with their own classes", "replay"
    ),
    "lode": Listed(".lode:LODE", "replay; separates new from old classes in the loss", "replay"),
    "star": Listed(".star:STAR", "replay that is robust to small changes in the weights", "replay"),
    "cope": Listed(".cope:CoPE", "one prototype per class; predicts the nearest", "latent-replay"),
    "efc": Listed(
        ".efc:EFC", "anchors features that the outputs depend on; keeps no rows", "latent-replay"
    ),
    "sarl": Listed(
        ".sarl:SARL",
        "sparse activations, a frozen past model and class prototypes",
        "latent-replay",
    ),
    "er": Listed(".er:ER", "plain replay: a batch from every past domain in each step", "replay"),
    "er-kd": Listed(
        ".er_kd:ERKD", "plain replay that also keeps past logits (distillation)", "replay"
    ),
    "der++": Listed(
        ".derpp:DERPP", "replay that matches stored logits as well as labels", "replay"
    ),
    "cl-vrex": Listed(".vrex:CLVREX", "replay with equal risks in all domains", "tailored"),
    "cl-fishr": Listed(
        ".fishr:CLFishr", "replay with equal gradient variances in all domains", "tailored"
    ),
    "cl-coral": Listed(
        ".coral:CLCORAL", "replay with equal feature means and covariances", "tailored"
    ),
    "cl-mmd": Listed(
        ".mmd:CLMMD", "replay with equal feature distributions (kernel means)", "tailored"
    ),
    "cl-andmask": Listed(
        ".andmask:CLANDMask", "replay; takes only gradients on which domains agree", "tailored"
    ),
    "cl-mix": Listed(
        ".mix:CLMix", "replay with several of these invariances and distillation", "mixture"
    ),
    "naive-cl-vrex": Listed(
        ".vrex:NaiveCLVREX", "cl-vrex against stored risks, without replay", "naive"
    ),
    "naive-cl-fishr": Listed(
        ".fishr:NaiveCLFishr", "cl-fishr against stored variances, without replay", "naive"
    ),
    "naive-cl-coral": Listed(
        ".coral:NaiveCLCORAL", "cl-coral against stored moments, without replay", "naive"
    ),
    "naive-cl-mmd": Listed(
        ".mmd:NaiveCLMMD", "cl-mmd against stored kernel means, without replay", "naive"
    ),
    "naive-cl-andmask": Listed(
        ".andmask:NaiveCLANDMask", "cl-andmask against stored gradients, without replay", "naive"
    ),
    "trees": Listed(
        "..systems.trees.entry:Trees",
        "boosted decision trees on the new and the kept rows (tables)",
        "trees",
    ),
    "ridge": Listed(
        "..systems.closed_form.ridge:Ridge",
        "ridge regression on fixed features; forgets nothing",
        "closed-form",
    ),
    "ncm": Listed(
        "..systems.closed_form.ncm:NCM", "nearest class mean on fixed features", "closed-form"
    ),
    "slda": Listed(
        "..systems.closed_form.slda:SLDA",
        "class means with one shared covariance, updated row by row",
        "closed-form",
    ),
    "best": Listed(
        "..systems.committee.entry:Best",
        "cl-mix and two closed forms together; start here",
        "committee",
    ),
    "majority": Listed(
        "..systems.closed_form.majority:Majority",
        "always the most frequent class; the level to beat",
        "closed-form",
    ),
    "joint": Listed(
        ".joint:Joint", "trains on all sources at once; the level to reach", "upper-bound"
    ),
    "urm": Listed(
        ".urm:URM", "trains on all sources at once, with features spread evenly", "upper-bound"
    ),
}
METHODS: Registry[type[Entry]] = Registry("method", "farshore.methods", BUILTIN, __name__)


def continual() -> list[str]:
    """Names of the methods that learn one domain after another and are ranked."""
    return [name for name in METHODS.names() if METHODS.get(name).kind == "continual"]
