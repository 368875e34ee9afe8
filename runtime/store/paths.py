"""Where the store lies unless someone says otherwise. Knows no store."""

import os
from pathlib import Path

DATA_DIR_VARIABLE = "WHOLETURN_DATA_DIR"
FILE_NAME = "sessions.db"


def default_store_path() -> Path:
    """`sessions.db` in the folder that WHOLETURN_DATA_DIR names, else in the user's data folder."""
    folder = os.environ.get(DATA_DIR_VARIABLE)
    if folder:
        return Path(folder).expanduser().absolute() / FILE_NAME
    import platformdirs  # 4 to 8 ms, and not needed when the folder is named

    return platformdirs.user_data_path("wholeturn", appauthor=False) / FILE_NAME
