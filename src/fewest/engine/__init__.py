"""How an answer is found: reading the model, the search, and the check by the user's own model."""
