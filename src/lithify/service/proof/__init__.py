"""`verify`: the trail of versions, and the proofs along it."""
