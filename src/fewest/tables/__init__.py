"""Tables: what a column is, the values of a row, how far two rows are apart, how values read in a sentence."""
