"""`verify`: the trail of versions, and what is held against what."""
