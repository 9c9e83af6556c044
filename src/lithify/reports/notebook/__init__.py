"""Reports in notebooks: what verbs print, as HTML."""
