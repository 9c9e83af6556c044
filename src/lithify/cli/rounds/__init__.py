"""`compact`, and the verbs that show, verify or undo a round."""
