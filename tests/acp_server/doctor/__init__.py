"""Each check of `wholeturn doctor`, both ways."""
