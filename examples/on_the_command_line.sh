# An analyst without Python: after examples/in_a_notebook.py, which writes cases.csv, codes.csv and credit.fewest.
fewest explain cases.csv --model credit.fewest --id application_id --unseen skip --out run
fewest verify run --data cases.csv --model credit.fewest
fewest report run --out report.html
fewest letters run --codes codes.csv --out letters --sender "A Bank" --dated 2026-11-12
fewest letter run --case APP-00011 --codes codes.csv --model credit.fewest
fewest compare run run --fail-over 0.1
