"""trees: gradient boosting, fitted again to the memory and the new domain."""

from typing import ClassVar, Literal

from ...entry import Entry
from ...settings import Choice, MethodSettings, Power, UniformInt, setting


class TreesSettings(MethodSettings):
    """The defaults are scikit-learn's, except for `domains`, which follows `er`."""

    learning_rate: float = setting(
        0.1, Power(10, -2, -0.3), gt=0, le=1, help="how much of each tree is added"
    )
    weight_decay: float = setting(0.0, ge=0, help="penalty on the squares of the leaves' values")
    batch_size: int = setting(64, ge=1, le=2**20, help="not used: all rows are used at once")
    iterations: int = setting(100, UniformInt(50, 300), ge=1, le=10_000, help="trees per class")
    leaves: int = setting(31, Choice((7, 15, 31, 63)), ge=2, le=10_000, help="leaves per tree")
    rows_per_leaf: int = setting(20, Choice((5, 20, 50)), ge=1, help="fewest rows in a leaf")
    library: Literal["sklearn", "lightgbm"] = setting(
        "sklearn", help="what fits the trees; lightgbm is an extra, farshore[trees]"
    )
    domains: Literal["equal", "rows"] = setting(
        "equal",
        Choice(("equal", "rows")),
        help="equal: every domain has the same total weight, as in er's batches; rows: every row",
    )


class Trees(Entry):
    """Boosted decision trees, refitted to the new domain and the rows in the memory.

    Equation: F = F_0 + ν Σ_t f_t, where each tree f_t fits the negative gradient of the weighted
    log loss over all rows of the new domain and all kept rows of past domains. With
    `domains=equal`, a row of domain e has weight 1 / n_e, so a past domain counts as much as the
    new one although the memory keeps few of its rows. Nothing else is carried over: the memory is
    the same as that of `er`, one partition per domain, and has the same budget.
    Paper: Friedman, "Greedy Function Approximation: A Gradient Boosting Machine", Annals of
    Statistics 2001; implemented by scikit-learn's HistGradientBoosting (the histograms of Ke et
    al., "LightGBM", NeurIPS 2017) or by LightGBM itself (`library=lightgbm`).
    Readings: the trees are stored as plain arrays, not pickled, and evaluated by a module of our
    own, which exports like a network. There are no steps: `steps` has no meaning here. `forget`
    deletes the rows; the trees, which were fitted to them, stay until the next domain is learned.
    Tables only.
    """

    name = "trees"
    needs_classes = False
    group = "trees"
    weighs_rows = True
    grows = True
    reference = "Friedman 2001; Ke et al. 2017"
    settings: TreesSettings
    system = "trees"
    tables_only = True
    weighs_classes = False
    Settings: ClassVar[type[MethodSettings]] = TreesSettings

    @classmethod
    def keeps_rows(cls) -> bool:
        """The memory keeps rows of past domains."""
        return True
