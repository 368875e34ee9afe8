"""Settings: where they are read, how sources are merged, whom they are believed, how they are shown."""
