"""Methods by name, and the base classes for writing a new method.

Other packages add theirs under the entry-point group `farshore.methods`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports
from ..base.registry import Registry, listed

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

# What learns unless a method is named, by the rule of docs/recommended.md; for numbers, the closed
# form that fits them. A network that you name is trained, by plain replay.
OF_CLASSES, OF_NUMBERS, OF_NETWORKS = "slda", "ridge", "er"

# The order in which groups are listed.
GROUPS = (
    *("finetune", "optimization", "regularization", "replay", "latent-replay", "trees", "tailored"),
    *("mixture", "naive", "closed-form", "committee", "adaptation", "upper-bound"),
    "references",
)
# Where each method is, what it does in one line, and its group.
BUILTIN = listed(
    """
finetune | .finetune:Finetune | finetune | plain training on one domain after another; forgets
agem | .agem:AGEM | optimization | projects gradients that would raise the loss on kept rows
upgd | .upgd:UPGD | optimization | protects useful weights and perturbs the others
ewc | .ewc:EWC | regularization | anchors weights that past domains depend on (Fisher information)
si | .si:SI | regularization | anchors weights that lowered the loss on past domains
snr | .snr:SNR | regularization | resets units that have stopped firing
evos | .evos:EvoS | latent-replay |
    keeps feature statistics, no rows, and predicts those of the next domain
fdr | .fdr:FDR | replay | keeps the probabilities on kept rows as they were
er-ace | .er_ace:ERACE | replay | replay; new rows compete only with their own classes
lode | .lode:LODE | replay | replay; separates new from old classes in the loss
star | .star:STAR | replay | replay that is robust to small changes in the weights
cope | .cope:CoPE | latent-replay | one prototype per class; predicts the nearest
efc | .efc:EFC | latent-replay | anchors features that the outputs depend on; keeps no rows
sarl | .sarl:SARL | latent-replay | sparse activations, a frozen past model and class prototypes
er | .er:ER | replay | plain replay: a batch from every past domain in each step
er-kd | .er_kd:ERKD | replay | plain replay that also keeps past logits, or a slow teacher's
groupdro | .groupdro:GroupDRO | replay | replay that counts the domains with the highest loss most
der++ | .derpp:DERPP | replay | replay that matches stored logits as well as labels
cl-vrex | .vrex:CLVREX | tailored | replay with equal risks in all domains
cl-fishr | .fishr:CLFishr | tailored | replay with equal gradient variances in all domains
cl-coral | .coral:CLCORAL | tailored | replay with equal feature means and covariances
cl-mmd | .mmd:CLMMD | tailored | replay with equal feature distributions (kernel means)
cl-andmask | .andmask:CLANDMask | tailored | replay; takes only gradients on which domains agree
cl-mix | .mix:CLMix | mixture | replay with several of these invariances and distillation
naive-cl-vrex | .vrex:NaiveCLVREX | naive | cl-vrex against stored risks, without replay
naive-cl-fishr | .fishr:NaiveCLFishr | naive | cl-fishr against stored variances, without replay
naive-cl-coral | .coral:NaiveCLCORAL | naive | cl-coral against stored moments, without replay
naive-cl-mmd | .mmd:NaiveCLMMD | naive | cl-mmd against stored kernel means, without replay
naive-cl-andmask | .andmask:NaiveCLANDMask | naive |
    cl-andmask against stored gradients, without replay
trees | ..systems.trees.entry:Trees | trees |
    boosted decision trees on the new and the kept rows (tables)
ridge | ..systems.closed_form.ridge:Ridge | closed-form |
    ridge regression on fixed features (RanPAC); forgets nothing
ncm | ..systems.closed_form.ncm:NCM | closed-form | nearest class mean on fixed features
slda | ..systems.closed_form.slda:SLDA | closed-form |
    class means with one shared covariance, updated row by row
auto | ..systems.committee.entry:Auto | committee |
    networks, closed forms and trees, weighed by what each predicted
best | ..systems.committee.entry:Best | committee | cl-mix and two closed forms; auto replaces it
majority | ..systems.closed_form.majority:Majority | closed-form |
    always the most frequent class; the level to beat
joint | .joint:Joint | upper-bound | trains on all sources at once; the level to reach
joint-linear | ..systems.joint.entry:JointLinear | references |
    logistic regression on all sources at once (tables)
joint-forest | ..systems.joint.entry:JointForest | references |
    a random forest on all sources at once (tables)
joint-trees | ..systems.joint.entry:JointTrees | references |
    boosted trees on all sources at once (tables)
urm | .urm:URM | upper-bound | trains on all sources at once, with features spread evenly
"""
)
METHODS: Registry[type[Entry]] = Registry("method", "farshore.methods", BUILTIN, __name__)


def fit_numbers() -> str:
    """The names of the continual methods for labels that are numbers."""
    return ", ".join(name for name in continual() if not METHODS.get(name).needs_classes)


def default_method(numbers: bool = False) -> str:
    """What learns classes, or numbers, unless a method is named."""
    return OF_NUMBERS if numbers else OF_CLASSES


def usual_among(names: Iterable[str], numbers: bool = False) -> str:
    """Of these, what to use unless another is certainly better: the default, or plain replay."""
    usual, known = default_method(numbers), set(names)
    return OF_NETWORKS if usual not in known and OF_NETWORKS in known else usual


def continual() -> list[str]:
    """Names of the methods that learn one domain after another and are ranked."""
    return [name for name in METHODS.names() if METHODS.get(name).kind == "continual"]
