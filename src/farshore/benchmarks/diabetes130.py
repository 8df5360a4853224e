"""diabetes130: readmission of diabetic patients, by the source of admission."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from ..base.randomness import derive
from ..data.domain import Domain
from ..data.downloads.public_files import PublicFile
from ..data.splits import divide_rows
from ..data.tables.table import TablePreprocessing
from .benchmark import Made
from .natural import OneFile, digest

# sha256 of UCI's diabetic_data.csv, with one line feed after each line.
PUBLISHED = "da21942c25a10a51a8842907ab01a8530b06232616b17d317441d592a20c4359"
SITE, PATIENT, LABEL = "admission_source_id", "patient_nbr", "readmitted"
NUMBERS = (
    *("time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications"),
    *("number_outpatient", "number_emergency", "number_inpatient", "number_diagnoses"),
)
CATEGORIES = (
    *("race", "gender", "age", "weight", "admission_type_id", "discharge_disposition_id"),
    *("payer_code", "medical_specialty", "diag_1", "diag_2", "diag_3", "max_glu_serum"),
    *("A1Cresult", "metformin", "repaglinide", "nateglinide", "chlorpropamide", "glimepiride"),
    *("acetohexamide", "glipizide", "glyburide", "tolbutamide", "pioglitazone", "rosiglitazone"),
    *("acarbose", "miglitol", "troglitazone", "tolazamide", "examide", "citoglipton", "insulin"),
    *("glyburide-metformin", "glipizide-metformin", "glimepiride-pioglitazone"),
    *("metformin-rosiglitazone", "metformin-pioglitazone", "change", "diabetesMed"),
)
MISSING = "?"
# Sites by their code in the file; the eight with fewer than 100 rows are one domain, `other`.
SITES = ("1", "2", "3", "4", "5", "6", "17", "20", "other", "7")
# A category is known if it has at least this share of the first site's training rows.
FREQUENT = 0.01


class Diabetes130(OneFile):
    """Hospital stays of diabetic patients: 99,493 rows, 46 columns; readmitted later or not.

    A site is a source of admission (1 physician referral, 4 transfer from a hospital, 17 not
    recorded, ...); the target is 7, the emergency room, with 56,632 rows. Eight sources with 96
    rows in all are the domain `other`. All stays of a patient are on the same side of the split in
    every source.

    What the source says, and what differs: Gardner, Popovic, Schmidt, "Benchmarking Distribution
    Shift in Tabular Data with TableShift", NeurIPS 2023, hold out site 7, drop rows without a race,
    and predict whether `readmitted` is not NO from the same 46 columns. They train on all other
    rows at once, divided 80/10/10 at random, without regard to patients, and score 90% of the
    target's rows. Columns of text become one column per category with at least 1% of the training
    rows; numbers are scaled. Here categories and scales are those of the first site alone, and the
    codes of admission and discharge, which they scale as numbers, are categories. As there, some
    patients of the target are also in the sources; a note says how many rows they have.
    """

    name = "diabetes130"
    summary = (
        "99,493 hospital stays of diabetic patients at ten sources of admission, 46 columns, "
        "readmitted or not"
    )
    reference = (
        "Strack et al., BioMed Research International 2014, doi:10.24432/C5230J; columns and "
        "target as in TableShift (Gardner, Popovic, Schmidt, NeurIPS 2023)"
    )
    licence = "CC BY 4.0"
    domains = SITES
    default_target = "7"
    classes = ("no", "yes")
    network = "mlp"
    stand_in = "heart-hospitals"
    steps = 500
    memory = 1000
    settings = {"replay_budget": "total"}
    raw = "diabetes130"
    set_name = "diabetes130"
    files = (
        PublicFile(
            "dataset_diabetes.zip",
            (
                "https://archive.ics.uci.edu/ml/machine-learning-databases/00296/"
                "dataset_diabetes.zip",
                "https://raw.githubusercontent.com/PranavSharma008/"
                "Re-Admission-of-Diabetic-Patients-after-Discharge/"
                "e04649c4fc3d9164abcf87c915811cca340a09b4/dataset_diabetes.zip",
            ),
            "3a17a3b55b6dd4a1926703185c0ad8e2ed30bc8e2f9b927cdd1000b733d1de8e",
            3_347_213,
        ),
    )
    forms = (
        *("dataset_diabetes.zip", "diabetic_data.csv", "diabetic_data.csv.gz"),
        *("diabetes130.csv.gz", "diabetes130.csv"),
    )

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Divide the rows with a race by site; the last column is the patient."""
        text = self.read_text(raw)
        if digest(text) != PUBLISHED:
            raise self.refused(raw, "its lines are not those of UCI's diabetic_data.csv")
        frame = pd.read_csv(BytesIO(text), dtype=str, keep_default_na=False)
        frame = frame[frame["race"] != MISSING]
        codes = {column: pd.Categorical(frame[column]) for column in CATEGORIES}
        named = {column: list(map(str, values.categories)) for column, values in codes.items()}
        self.about["categories"] = named
        numbers = [frame[column].to_numpy("int32") for column in (*NUMBERS, PATIENT)]
        coded = [values.codes.astype("int32") for values in codes.values()]
        table = np.column_stack([*coded, *numbers])
        labels = (frame[LABEL] != "NO").to_numpy("uint8")
        site = frame[SITE].where(frame[SITE].isin(SITES), "other").to_numpy()
        for name in SITES:
            rows = np.flatnonzero(site == name)
            yield name, table[rows], labels[rows]

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make the sites; scales and known categories are those of the first one's training rows.

        The split of a patient is decided by the first source in the usual order that has him or
        her, whatever the order of learning; the target has no say.
        """
        prepared = self.open(seed)
        tables = {name: prepared.read(name) for name in [*sources, target]}
        patients = {name: np.asarray(inputs[:, -1]) for name, (inputs, _) in tables.items()}
        sides: dict[str, bool] = {}
        splits = {
            name: divide_rows(
                name,
                len(patients[name]),
                seed=derive(seed, self.set_name, SITES.index(name)),
                groups=patients[name],
                sides=sides,
            )
            for name in SITES
            if name in sources
        }

        def frame_of(name: str) -> pd.DataFrame:
            inputs = np.asarray(tables[name][0])
            columns: dict[str, np.ndarray] = {}
            for index, (column, names) in enumerate(prepared.about["categories"].items()):
                texts = np.array([None if each == MISSING else each for each in names], object)
                columns[column] = texts[inputs[:, index]]
            for index, column in enumerate(NUMBERS, start=len(CATEGORIES)):
                columns[column] = inputs[:, index]
            return pd.DataFrame(columns)

        first = frame_of(sources[0]).iloc[splits[sources[0]][0].numpy()]
        known = {column: frequent(first[column]) for column in CATEGORIES}
        preprocessing = TablePreprocessing(NUMBERS, known, indicators=False).learn(first)
        self.preprocessing = preprocessing
        empty = torch.empty(0, dtype=torch.long)

        def make_domain(name: str) -> Domain:
            labels = tables[name][1]
            train, held = splits.get(name, (empty, torch.arange(len(labels))))
            blank = Domain(name, torch.empty(len(labels), 0), labels, train, held)
            return replace(blank, inputs=preprocessing.transform(frame_of(name)))

        learned = np.concatenate([patients[name] for name in sources])
        shared = int(np.isin(learned, patients[target]).sum())
        note = f"{shared:,} of {len(learned):,} source rows: patients also at {target}"
        return [make_domain(name) for name in sources], lambda: make_domain(target), (note,)


def frequent(values: pd.Series) -> list[str]:
    """Return the categories with at least 1% of these rows, sorted."""
    shares = values.value_counts() / len(values)
    return sorted(str(name) for name in shares[shares >= FREQUENT].index)
