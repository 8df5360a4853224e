"""What people mistype: one line, what is allowed or what to type instead, and the exit code."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from made_sites import Made, make_sites

from farshore.cli.app import main

# The mistake as it is typed in a folder with sites.csv (five sites), two.csv (two of them),
# table.xlsx, empty.csv, text.txt (no table), folder/ (no model) and model/; what the line says.
MISTAKES = {
    "run heart-hospitals er2": "did you mean 'er'",
    "run hart-hospitals er": "did you mean 'heart-hospitals'",
    "run heart-hospitals er --target berlin": "va",
    "run heart-hospitals er --steps 0": "step",
    "run heart-hospitals er --memory -5": "memory",
    "run heart-hospitals er --order va,cleveland --target va": "order",
    "run heart-hospitals er --set learning_rat=1": "learning_rate",
    "run heart-hospitals er --set learning_rate=fast": "learning_rate",
    "run heart-hospitals er --set nonsense": "name=value",
    "run heart-hospitals er --network mpl": "did you mean 'mlp'",
    "run heart-hospitals er --device tpu": "cpu",
    "run heart-hospitals er --option severty=3": "severty",
    "run site.csv er --domain site --label ill": "'site.csv': did you mean 'sites.csv'?",
    "run other.csv er --domain site --label ill": "'other.csv': check the path, or name a bench",
    "run sites.csv er --domain hospital --label ill": "hospital",
    "run sites.csv er --domain site --label sick": "sick",
    "run sites.csv er --label ill": "domain",
    "run table.xlsx er --domain site --label ill": "save its sheet as .csv",
    "run empty.csv er --domain site --label ill": "empty.csv",
    "compare heart-hospitals --methods er,tailord": "did you mean 'tailored'",
    "compare heart-hospitals --seeds 0": "give at least 1",
    "compare heart-hospitals --orders backwards": "listed",
    "compare heart-hospitals --workers 0": "give at least 1",
    "compare heart-hospitals --engine slurm": "use local or ray",
    "audit two.csv --domain site --label ill": "too little data",
    "audit sites.csv --domain site --label ill --out page.pdf": "end it in .html",
    "audit sites.csv --domain site --label ill --design huge": "full",
    "audit .": "contains no image file",
    "learn model nowhere.csv --name a": "nowhere.csv",
    "learn model sites.csv --name a --label il": "il",
    "learn new sites.csv --label ill --task regresion": "it should be 'classification' or",
    "predict nowhere sites.csv": "nowhere does not exist",
    "predict folder sites.csv": "no saved",
    "predict model text.txt": "text.txt",
    "show model -o log.md": "only allowed with --log",
    "forget model site-x": "site-x",
    "card": "Missing argument",
    "export model model.bin": ".onnx",
    "report nowhere": "nowhere",
    "results nowhere": "nowhere",
    "sweep nowhere.yaml": "nowhere.yaml",
    "methods er3": "did you mean",
    "benchmarks heart": "heart-hospitals",
    "prepare rotated-mnst": "did you mean 'rotated-mnist'",
    "adit sites.csv": "No such command",
    "demo --step 3": "--steps",
    "demo --data sites.csv": "exists: give the name of a new file",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("mistakes")
    made = make_sites(Made(sites=4, rows=30), seed=1)
    made.to_csv(work / "sites.csv", index=False)
    sites = list(made["site"].unique())[:2]
    made[made["site"].isin(sites)].to_csv(work / "two.csv", index=False)
    made[made["site"] == sites[0]].drop(columns="site").to_csv(work / "first.csv", index=False)
    (work / "table.xlsx").write_bytes(b"PK\x03\x04")
    (work / "empty.csv").write_text("")
    (work / "text.txt").write_text("not a table")
    (work / "folder").mkdir()
    return work


@pytest.fixture
def typed(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Type a command line; the exit code and what it prints on the two outputs."""

    def type_in(line: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        monkeypatch.setattr("sys.argv", ["farshore", *line.split()])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        code = ended.value.code
        return (int(code) if code is not None else 0), captured.out, captured.err

    return type_in


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_gives_one_line_and_exit_code_2(line: str, typed, folder: Path) -> None:
    if "model" in line.split() and not (folder / "model").exists():
        code, _, said = typed("learn model first.csv --label ill --method ridge")
        assert code == 0, said
    code, out, err = typed(line)
    assert code == 2, (out, err)
    said = [text for text in (out + err).splitlines() if text.strip()]
    usage = [text for text in said if text.startswith(("Usage: ", "Try 'farshore"))]
    assert len(said) - len(usage) == 1 or "too little data" in out, said
    assert MISTAKES[line] in out + err
    assert "Traceback" not in err


def test_a_site_is_named_after_its_file(typed, folder: Path) -> None:
    code, out, _ = typed("learn other first.csv --label ill --method ridge")
    assert code == 0
    assert "learned first (" in out


def test_the_table_of_a_mistake_is_a_table(folder: Path) -> None:
    """The mistakes above fail for the reasons that are named, not because the data are wrong."""
    assert pd.read_csv(folder / "sites.csv")["site"].nunique() == 5
