"""An index of the keys of a segment inside its own file: where a key may be, without reading the keys."""
