"""What each method does, in one line, by group: the list of `farshore methods`.

It is kept apart from the methods, whose modules import torch, so that the list appears at once. A
test checks that it names every method of the catalog in its group.
"""

from __future__ import annotations

LINES: dict[str, dict[str, str]] = {
    "finetune": {
        "finetune": "plain training on one domain after another; forgets",
    },
    "optimization": {
        "agem": "projects gradients that would raise the loss on kept rows",
        "upgd": "protects useful weights and perturbs the others",
    },
    "regularization": {
        "ewc": "anchors weights that past domains depend on (Fisher information)",
        "si": "anchors weights that lowered the loss on past domains",
        "snr": "resets units that have stopped firing",
    },
    "replay": {
        "fdr": "keeps the probabilities on kept rows as they were",
        "er-ace": "replay; new rows compete only with their own classes",
        "lode": "replay; separates new from old classes in the loss",
        "star": "replay that is robust to small changes in the weights",
        "er": "plain replay: a batch from every past domain in each step",
        "er-kd": "plain replay that also keeps past logits (distillation)",
        "der++": "replay that matches stored logits as well as labels",
    },
    "latent-replay": {
        "cope": "one prototype per class; predicts the nearest",
        "efc": "anchors features that the outputs depend on; keeps no rows",
        "sarl": "sparse activations, a frozen past model and class prototypes",
    },
    "trees": {
        "trees": "boosted decision trees on the new and the kept rows (tables)",
    },
    "tailored": {
        "cl-vrex": "replay with equal risks in all domains",
        "cl-fishr": "replay with equal gradient variances in all domains",
        "cl-coral": "replay with equal feature means and covariances",
        "cl-mmd": "replay with equal feature distributions (kernel means)",
        "cl-andmask": "replay; takes only gradients on which domains agree",
    },
    "mixture": {
        "cl-mix": "replay with several of these invariances and distillation",
    },
    "naive": {
        "naive-cl-vrex": "cl-vrex against stored risks, without replay",
        "naive-cl-fishr": "cl-fishr against stored variances, without replay",
        "naive-cl-coral": "cl-coral against stored moments, without replay",
        "naive-cl-mmd": "cl-mmd against stored kernel means, without replay",
        "naive-cl-andmask": "cl-andmask against stored gradients, without replay",
    },
    "closed-form": {
        "ridge": "ridge regression on fixed features; forgets nothing",
        "ncm": "nearest class mean on fixed features",
        "slda": "class means with one shared covariance, updated row by row",
        "majority": "always the most frequent class; the level to beat",
    },
    "committee": {
        "best": "cl-mix and two closed forms together; start here",
    },
    "adaptation": {
        "tent": "adapts normalisation layers to the target's inputs",
        "cotta": "adapts to the target's inputs with a slow teacher",
        "shot++": "adapts the features to the target with pseudo-labels",
    },
    "upper-bound": {
        "joint": "trains on all sources at once; the level to reach",
        "urm": "trains on all sources at once, with features spread evenly",
    },
}
