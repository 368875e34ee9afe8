"""Settings: where they are read, how sources are merged, whom they are believed, how they are shown.

Read in this order: `layers` (a source and its tree), `files`, `environment`, `options`, `shorts` (what
makes layers), `merge`, `check` and `references` (what is wrong, in sentences), `project` and `trust`
(what a checked-out folder may say), `build` (tree to dataclasses), `load` (the two entry points),
`render` (`wholeturn config show`).
"""
